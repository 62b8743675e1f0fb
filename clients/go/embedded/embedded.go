// Package embedded contains the program pintle. A test that imports it needs no other file:
//
//	import _ "github.com/pintle/pintle/clients/go/embedded"
//
// It is a module of its own, so that those who have the program in PATH do not download it. `cargo xtask packages` adds the programs.
package embedded

import "github.com/pintle/pintle/clients/go/binary"

func init() { binary.Embed(binary.Packed{}) }
