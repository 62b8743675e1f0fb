//go:build tools

// Package tools names the program that is built here.
package tools

import _ "github.com/envoyproxy/gateway/cmd/envoy-gateway"
