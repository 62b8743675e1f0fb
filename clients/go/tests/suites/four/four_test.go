package four

import (
	"testing"

	"pintle.test/go/internal/suite"
)

func Test(t *testing.T) { suite.Run(t) }
