// Package start prints how long a server, and a workspace for a test, take with the Go module; benches/packages runs it.
package start

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pintle/pintle/clients/go/clientgo"
	"github.com/pintle/pintle/clients/go/pintle"
	"github.com/pintle/pintle/clients/go/pintletest"

	_ "github.com/pintle/pintle/clients/go/embedded"
)

const tests = 200

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func list(t *testing.T, config *rest.Config) {
	if _, err := dynamic.NewForConfigOrDie(config).Resource(namespaces).List(context.Background(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func milliseconds(began time.Time) float64 {
	return float64(time.Since(began)) / float64(time.Millisecond)
}

func TestStart(t *testing.T) {
	began := time.Now()
	list(t, clientgo.Start(t))
	ready := milliseconds(began)
	template := pintletest.NewTemplate(t, "built", func(*pintle.Workspace) error { return nil })
	var forks, all []float64
	for range tests {
		began := time.Now()
		var forked float64
		// the workspace ends with its test
		t.Run("", func(t *testing.T) {
			workspace := template.Fork(t)
			forked = milliseconds(began)
			list(t, clientgo.Config(workspace))
		})
		forks, all = append(forks, forked), append(all, milliseconds(began))
	}
	slices.Sort(forks)
	slices.Sort(all)
	fmt.Printf("{\"ready\": %g, \"fork\": %g, \"test\": %g}\n", ready, forks[tests/2], all[tests/2])
}
