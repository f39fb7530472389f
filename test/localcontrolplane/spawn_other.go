// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package localcontrolplane

import "syscall"

func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
