// SPDX-License-Identifier: Apache-2.0

package assisted

import "time"

// The stages of a host's installation, as in Agent.status.progress.currentStage. Faults name them.
const (
	StageStarting            = "Starting installation"
	StageInstalling          = "Installing"
	StageWritingImage        = "Writing image to disk"
	StageCopyingRegistry     = "Copying registry data to disk"
	StageWaitingControlPlane = "Waiting for control plane"
	StageWaitingBootkube     = "Waiting for bootkube"
	StageWaitingController   = "Waiting for controller"
	StageRebooting           = "Rebooting"
	StageWaitingIgnition     = "Waiting for ignition"
	StageConfiguring         = "Configuring"
	StageJoined              = "Joined"
	StageDone                = "Done"
)

// The stages by role, in order; seen on the real service (ASSISTED 1.2).
var (
	masterStages = []string{
		StageStarting, StageInstalling, StageWritingImage, StageCopyingRegistry, StageRebooting, StageConfiguring, StageJoined, StageDone,
	}
	bootstrapStages = []string{
		StageStarting, StageInstalling, StageWritingImage, StageCopyingRegistry, StageWaitingControlPlane, StageWaitingBootkube,
		StageWaitingController, StageRebooting, StageConfiguring, StageJoined, StageDone,
	}
	workerStages = []string{
		StageStarting, StageInstalling, StageWritingImage, StageWaitingControlPlane, StageRebooting, StageWaitingIgnition,
		StageConfiguring, StageJoined, StageDone,
	}
	singleNodeStages = []string{
		StageStarting, StageInstalling, StageWaitingBootkube, StageWritingImage, StageCopyingRegistry, StageRebooting, StageJoined, StageDone,
	}
)

// stagePercent is the host's own percentage at a stage: equal steps, rounded down.
func stagePercent(stages []string, index int) int64 {
	if len(stages) == 0 {
		return 0
	}
	return int64((index + 1) * 100 / len(stages))
}

// stageLimits are how much longer or shorter than Durations.StageTimeout a host may stay in a stage (ASSISTED 3). Rebooting has a time of
// its own.
var stageLimits = map[string]float64{StageStarting: 0.5, StageWritingImage: 0.5, StageCopyingRegistry: 1.5, StageWaitingIgnition: 24}

// stageLimit is how long a host may stay in a stage.
func (d Durations) stageLimit(stage string) time.Duration {
	if limit, ok := stageLimits[stage]; ok {
		return time.Duration(limit * float64(d.StageTimeout))
	}
	return d.StageTimeout
}

// prepareLimit is how long a cluster may prepare, 18 minutes in reality, and finalizeLimit how long it may be finalized, 5 hours.
// installLimit is how long it may be installed while a host waits for a person, 24 hours, and pendingLimit how long a host may wait that
// the cluster can do without, one hour.
func (d Durations) prepareLimit() time.Duration { return d.StageTimeout * 18 / 60 }

func (d Durations) finalizeLimit() time.Duration { return d.StageTimeout * 5 }

func (d Durations) installLimit() time.Duration { return d.StageTimeout * 24 }

func (d Durations) pendingLimit() time.Duration { return d.StageTimeout }
