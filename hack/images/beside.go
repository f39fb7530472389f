// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
)

// writeBeside writes into the folder out what an image has beside a manager that was built: the Dockerfiles take it from there, so that
// their images have the same files.
func (s settings) writeBeside(ctx context.Context, manager string) error {
	info, err := buildinfo.ReadFile(manager)
	if err != nil {
		return fmt.Errorf("read which program %s is: %w", manager, err)
	}
	modules, err := s.modules(ctx, program{pkg: info.Path}, s.platforms[0], manager)
	if err != nil {
		return err
	}
	files := licenceFiles(modules)
	files[rootsFile] = roots()
	for name, content := range files {
		file := filepath.Join(s.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("write a file of the image: %w", err)
		}
	}
	return nil
}
