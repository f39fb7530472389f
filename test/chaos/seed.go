// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// seedVariable is the environment variable by which the points of an earlier run are chosen again.
const seedVariable = "CHAOS_SEED"

// seed is what the environment says, or another one in each run.
func seed() (uint64, error) {
	text, given := os.LookupEnv(seedVariable)
	if !given {
		return uint64(time.Now().UnixNano()), nil
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has to be a number: %w", seedVariable, err)
	}
	return value, nil
}

// chooser picks the writes after which managers die. It is shared by both, whose proxies ask at the same time.
type chooser struct {
	seed uint64

	mu sync.Mutex
	// made counts writes of the same kind and name, kinds has the kinds of all of them.
	made  map[string]int
	kinds sets.Set[string]
	// new lets managers die after every write that was not made before; left is how many of the others they still die after.
	new  bool
	left int
	// drawn are the latter, in order.
	drawn []string
}

func newChooser(seed uint64) *chooser {
	return &chooser{seed: seed, made: map[string]int{}, kinds: sets.New[string]()}
}

// enter begins a part of the story, in which managers die after so many more writes. Where there are not enough, they die in the next part.
func (c *chooser) enter(everyNew bool, draws int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.new = everyNew
	c.left += draws
}

// choose says whether the manager dies after a write. A write that is new is chosen wherever all of them are. Of the others the seed
// chooses two of three, by what is written and how often it was: with one seed they are the same in every run that makes them, whatever
// else happens first.
func (c *chooser) choose(manager string, w Write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := manager + ": " + w.String()
	c.kinds.Insert(kind)
	key := kind + " " + generic(w.Name)
	isNew := c.made[kind+" "+w.Name] == 0
	c.made[kind+" "+w.Name]++
	if generic(w.Name) != w.Name {
		c.made[key]++
	}
	if isNew && c.new {
		return true
	}
	if c.left == 0 || c.hash(fmt.Sprintf("%s %d", key, c.made[key]))%3 == 0 {
		return false
	}
	c.left--
	c.drawn = append(c.drawn, fmt.Sprintf("%s (%d)", key, c.made[key]))
	return true
}

// hash is a number that seed and text give.
func (c *chooser) hash(text string) uint64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %s", c.seed, text) // It never fails.
	return sum.Sum64() >> 7                 // The lowest bits depend on the last character alone.
}

// generic is a name without what Cluster API generates, for workers.
func generic(name string) string {
	if _, _, generated := strings.Cut(name, "-workers-"); generated {
		return "<worker>"
	}
	return name
}
