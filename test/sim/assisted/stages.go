// SPDX-License-Identifier: Apache-2.0

package assisted

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
