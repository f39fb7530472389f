// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// clockTick is the unit of times in /proc: a hundredth of a second on every architecture that Go knows.
const clockTick = 100

// usage is what a process has cost so far, as the kernel counts it.
type usage struct {
	// cpuSeconds are user and system time together.
	cpuSeconds float64
	// rssKiB is the memory that it has now, and maxRSSKiB the most that it has had.
	rssKiB, maxRSSKiB float64
}

func usageOf(pid int) (usage, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return usage{}, fmt.Errorf("read what process %d has used: %w", pid, err)
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return usage{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	seconds, err := cpuSeconds(string(stat))
	return usage{seconds, kibibytes(string(status), "VmRSS"), kibibytes(string(status), "VmHWM")}, err
}

// cpuSeconds reads the 14th and 15th field of /proc/<pid>/stat. The second one, the program's name in brackets, may contain blanks, and
// brackets too.
func cpuSeconds(stat string) (float64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%q is not what the kernel tells of a process", stat)
	}
	user, userErr := strconv.ParseUint(fields[11], 10, 64)
	system, systemErr := strconv.ParseUint(fields[12], 10, 64)
	return float64(user+system) / clockTick, errors.Join(userErr, systemErr)
}

// kibibytes is a line of /proc/<pid>/status; 0 when there is none.
func kibibytes(status, name string) float64 {
	for line := range strings.Lines(status) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			number, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return number
		}
	}
	return 0
}

// connections counts the established TCP connections of a process to an address, such as 127.0.0.1:6443.
func connections(pid int, remote string) (int, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	own, err := sockets(filepath.Join(folder, "fd"))
	if err != nil {
		return 0, err
	}
	file, err := os.Open(filepath.Join(folder, "net", "tcp"))
	if err != nil {
		return 0, fmt.Errorf("read the connections of process %d: %w", pid, err)
	}
	defer func() { _ = file.Close() }()
	address, err := kernelAddress(remote)
	if err != nil {
		return 0, err
	}
	return countConnections(file, address, own)
}

// sockets are the inodes of the sockets that a process has open.
func sockets(folder string) (map[string]bool, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read what a process has open: %w", err)
	}
	inodes := map[string]bool{}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(folder, entry.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes, nil
}

// established is the state of a connection in /proc/net/tcp.
const established = "01"

// countConnections counts the lines of /proc/net/tcp that are about one of the inodes and a connection to the address.
func countConnections(table io.Reader, address string, inodes map[string]bool) (int, error) {
	count := 0
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[2] == address && fields[3] == established && inodes[fields[9]] {
			count++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read the connections of a process: %w", err)
	}
	return count, nil
}

// kernelAddress is how /proc/net/tcp writes an IPv4 address and port: in hexadecimal, the bytes of the address in reverse.
func kernelAddress(address string) (string, error) {
	var a, b, c, d, port int
	if _, err := fmt.Sscanf(address, "%d.%d.%d.%d:%d", &a, &b, &c, &d, &port); err != nil {
		return "", fmt.Errorf("%s is no IPv4 address with a port: %w", address, err)
	}
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", d, c, b, a, port), nil
}
