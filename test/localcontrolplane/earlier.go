// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// EarlierCommit is the commit of this repository that upgrades are tested from: the first version that installed clusters on the real
// services.
const EarlierCommit = "30b10c5756f4354df7ce51e10fdb0abb7acc5942"

// Root is the repository's folder that these tools build from.
func (t *Tools) Root() string { return t.root }

// Earlier returns tools that build from this repository's sources as they were at EarlierCommit. The sources are read from the repository's
// history, which has to be whole, and kept in the cache folder.
func (t *Tools) Earlier(ctx context.Context) (*Tools, error) {
	root := filepath.Join(t.cache, "earlier", EarlierCommit[:12])
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of earlier sources: %w", err)
	}
	if err := t.once(ctx, root, func(draft string) error { return t.checkOut(ctx, EarlierCommit, draft) }); err != nil {
		return nil, err
	}
	return &Tools{root: root, cache: t.cache, progress: t.progress}, nil
}

// checkOut writes the files of a commit into a folder. An index of its own keeps the repository's as it is.
func (t *Tools) checkOut(ctx context.Context, commit, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for commit %s: %w", commit, err)
	}
	index := "GIT_INDEX_FILE=" + folder + ".index"
	defer func() { _ = os.Remove(folder + ".index") }() // Left behind, it is overwritten by the next try.
	if _, err := commandWith(ctx, t.root, []string{index}, "git", "read-tree", commit); err != nil {
		return fmt.Errorf("commit %s, which upgrades are tested from, is not in the history of %s: fetch the whole history with "+
			"git fetch --unshallow, or use a clone in the place of an archive: %w", commit, t.root, err)
	}
	_, err := commandWith(ctx, t.root, []string{index}, "git", "checkout-index", "--all", "--prefix="+folder+"/")
	return err
}
