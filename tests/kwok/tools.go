//go:build tools

// Package tools names the program that is built here.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
