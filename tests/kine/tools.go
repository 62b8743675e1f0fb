//go:build tools

// The test of the etcd engine on kine builds kine from its module.
package kine

import _ "github.com/k3s-io/kine"
