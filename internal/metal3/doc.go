// SPDX-License-Identifier: Apache-2.0

// Package metal3 is the only code that knows field paths of Metal3 (DESIGN D2). Metal3Machines are read as unstructured objects, because
// releases of Cluster API Provider Metal3 serve v1beta1, v1beta2 or both, and no Go types of it compile beside Cluster API 1.14.
package metal3
