module github.com/capi-openshift/agent-providers/hack/tools/operator

go 1.26.0

require sigs.k8s.io/cluster-api-operator v0.29.0
