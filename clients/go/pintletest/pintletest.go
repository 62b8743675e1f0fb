// Package pintletest is the Kubernetes API for tests: an API of its own for each test, in about a millisecond.
//
//	func TestCronTabs(t *testing.T) {
//		workspace := pintletest.New(t, pintletest.Options{CRDPaths: []string{"../config/crd"}})
//		var crontabs struct{ Items []any }
//		err := workspace.Request(ctx, "GET", "/apis/stable.example.com/v1/crontabs", nil, &crontabs)
//		...
//	}
//
// The module clients/go/clientgo has the same for clients of client-go. All tests of a `go test ./...` share one server, which ends with the
// last process that uses it, however that ends. What is wrong ends the test with one line that has the remedy.
package pintletest

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/pintle/pintle/clients/go/pintle"
)

// Options says what a workspace begins with. The zero value is an empty one, as a new cluster is.
type Options struct {
	// CRDPaths are files and directories of CustomResourceDefinitions, and of other manifests that all tests need. They are applied
	// to a template once in a test run, of which each workspace is a fork.
	CRDPaths []string

	// Flags are flags of `pintle serve`. Tests with other flags have another server.
	Flags []string
}

// Workspace is an API of its own, which ends with its test.
type Workspace struct {
	*pintle.Workspace
}

// Template is a workspace for forks. Nothing can be written to it.
type Template struct {
	workspace *pintle.Workspace
}

// Stop ends the use of the server by this process, which otherwise is that of its end. It is meant for TestMain, after the tests.
func Stop() { pintle.Stop() }

// New creates a workspace, which ends with the test. That of a test that fails stays as long as the server.
func New(t testing.TB, options ...Options) *Workspace {
	t.Helper()
	ctx := context.Background()
	server, paths := start(ctx, t, options)
	if len(paths) == 0 {
		created, err := server.Workspace(ctx, nil)
		return owned(t, created, err)
	}
	template, err := server.TemplateOf(ctx, paths...)
	check(t, err)
	created, err := template.Fork(ctx)
	return owned(t, created, err)
}

// NewTemplate returns the template of a key. The first of all processes of the test run that asks for it calls build; the others wait.
// The options are what the template begins with. The file that defines build is part of the key: two files that chose one name would
// otherwise get each other's objects.
func NewTemplate(t testing.TB, key string, build func(*pintle.Workspace) error, options ...Options) *Template {
	t.Helper()
	ctx := context.Background()
	server, paths := start(ctx, t, options)
	template, err := server.Template(ctx, fmt.Sprintf("named %s %s", fileOf(build), key), func(workspace *pintle.Workspace) error {
		if err := workspace.Apply(ctx, paths...); err != nil {
			return err
		}
		return build(workspace)
	})
	check(t, err)
	return &Template{template}
}

// fileOf is the file that defines a function.
func fileOf(build func(*pintle.Workspace) error) string {
	pointer := reflect.ValueOf(build).Pointer()
	file, _ := runtime.FuncForPC(pointer).FileLine(pointer)
	return file
}

// Fork creates a workspace that begins with everything in the template, and ends with the test.
func (template *Template) Fork(t testing.TB) *Workspace {
	t.Helper()
	forked, err := template.workspace.Fork(context.Background())
	return owned(t, forked, err)
}

// Fork creates a workspace that begins with everything in this one, and ends with the test.
func (w *Workspace) Fork(t testing.TB) *Workspace {
	t.Helper()
	forked, err := w.Workspace.Fork(context.Background())
	return owned(t, forked, err)
}

func start(ctx context.Context, t testing.TB, options []Options) (*pintle.Server, []string) {
	t.Helper()
	var flags, paths []string
	for _, option := range options {
		flags, paths = append(flags, option.Flags...), append(paths, option.CRDPaths...)
	}
	server, err := pintle.Start(ctx, flags...)
	check(t, err)
	return server, paths
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("pintletest: %v", err)
	}
}

// owned lets a workspace end with a test, unless the test fails.
func owned(t testing.TB, created *pintle.Workspace, err error) *Workspace {
	t.Helper()
	check(t, err)
	logSize := created.Server.LogSize()
	t.Cleanup(func() {
		t.Helper()
		if t.Failed() {
			show(t, created, logSize)
		} else if err := created.Delete(context.Background()); err != nil {
			t.Errorf("pintletest: %v", err)
		}
	})
	return &Workspace{created}
}

// show logs how to look into the workspace of a test that has failed, and what the server has logged meanwhile.
func show(t testing.TB, kept *pintle.Workspace, logSize int64) {
	t.Helper()
	if log := kept.Server.LogSince(logSize); log != "" {
		t.Logf("log of the Pintle server:\n%s", log)
	}
	kubeconfig, err := kept.Kubeconfig()
	if err != nil {
		t.Logf("pintletest: no kubeconfig of the workspace of this test: %v", err)
		return
	}
	hint := "until the end of the run; PINTLE_KEEP=10m keeps it for that time"
	if keep := os.Getenv("PINTLE_KEEP"); keep != "" {
		duration, err := time.ParseDuration(keep)
		if err == nil {
			err = kept.Server.KeepFor(duration)
		}
		if hint = "for " + keep; err != nil {
			hint = "until the end of the run, since PINTLE_KEEP fails: " + err.Error()
		}
	}
	t.Logf("workspace of this test, %s:\nKUBECONFIG=%s kubectl api-resources", hint, kubeconfig)
	if changes, err := kept.Changes(context.Background()); err != nil {
		t.Logf("pintletest: the changes of the workspace cannot be listed: %v", err)
	} else if changes != "" {
		t.Logf("what differs from the beginning of the workspace:\n%s", changes)
	}
}
