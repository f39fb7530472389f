// SPDX-License-Identifier: Apache-2.0

package trace

// Difference is a line that only one of two sequences has at its place.
type Difference struct {
	// Recorded is true for a line that the recording has, false for one that the simulation has.
	Recorded bool
	Line     string
}

func (d Difference) String() string {
	if d.Recorded {
		return "recorded only:  " + d.Line
	}
	return "simulated only: " + d.Line
}

// Compare returns the differences between two sequences, as few as possible: what remains besides a longest common subsequence.
func Compare(recorded, simulated []string) []Difference {
	common := make([][]int, len(recorded)+1)
	for i := range common {
		common[i] = make([]int, len(simulated)+1)
	}
	for i := len(recorded) - 1; i >= 0; i-- {
		for j := len(simulated) - 1; j >= 0; j-- {
			if recorded[i] == simulated[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var differences []Difference
	i, j := 0, 0
	for i < len(recorded) || j < len(simulated) {
		switch {
		case i < len(recorded) && j < len(simulated) && recorded[i] == simulated[j]:
			i, j = i+1, j+1
		case j == len(simulated) || i < len(recorded) && common[i+1][j] >= common[i][j+1]:
			differences = append(differences, Difference{Recorded: true, Line: recorded[i]})
			i++
		default:
			differences = append(differences, Difference{Line: simulated[j]})
			j++
		}
	}
	return differences
}
