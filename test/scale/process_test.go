// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"net"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCPUSeconds(t *testing.T) {
	g := NewWithT(t)
	seconds, err := cpuSeconds("42 (a) name) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 8 0 100 0 0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seconds).To(Equal(1.75))
	_, err = cpuSeconds("nothing")
	g.Expect(err).To(HaveOccurred())
}

func TestKibibytes(t *testing.T) {
	g := NewWithT(t)
	status := "Name:\tmanager\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n"
	g.Expect(kibibytes(status, "VmHWM")).To(Equal(204800.0))
	g.Expect(kibibytes(status, "VmRSS")).To(Equal(102400.0))
	g.Expect(kibibytes(status, "VmSwap")).To(BeZero())
}

func TestCountConnections(t *testing.T) {
	g := NewWithT(t)
	address, err := kernelAddress("127.10.42.5:6443")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(address).To(Equal("052A0A7F:192B"))
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:8001 052A0A7F:192B 01 00000000:00000000 00:00000000 00000000     0        0 7001 1
   1: 0100007F:8002 052A0A7F:192B 01 00000000:00000000 00:00000000 00000000     0        0 7002 1
   2: 0100007F:8003 052A0A7F:192B 06 00000000:00000000 00:00000000 00000000     0        0 7003 1
   3: 0100007F:8004 0100007F:192B 01 00000000:00000000 00:00000000 00000000     0        0 7004 1
   4: 0100007F:8005 052A0A7F:192B 01 00000000:00000000 00:00000000 00000000     0        0 9999 1
`
	inodes := map[string]bool{"7001": true, "7002": true, "7003": true, "7004": true}
	count, err := countConnections(strings.NewReader(table), address, inodes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(count).To(Equal(2), "one is of another process, one is closed, and one leads elsewhere")
	_, err = kernelAddress("::1")
	g.Expect(err).To(HaveOccurred())
}

// TestOwnProcess reads what the kernel says of the test itself.
func TestOwnProcess(t *testing.T) {
	g := NewWithT(t)
	used, err := usageOf(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(used.rssKiB).To(BeNumerically(">", 1024))
	g.Expect(used.maxRSSKiB).To(BeNumerically(">=", used.rssKiB))

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = listener.Close() }()
	g.Expect(connections(os.Getpid(), listener.Addr().String())).To(BeZero())
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	g.Expect(connections(os.Getpid(), listener.Addr().String())).To(Equal(1))
}
