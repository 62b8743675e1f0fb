// Validates the images of an OCI layout: digests, sizes, configurations and layers.
package main

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func main() {
	index, err := layout.ImageIndexFromPath(os.Args[1])
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
