// Package pintletest is the Kubernetes API for tests: an API of its own for each test, in about a millisecond.
//
//	func TestCronTabs(t *testing.T) {
//		config := pintletest.Start(t, pintletest.Options{CRDPaths: []string{"../config/crd"}})
//		client := dynamic.NewForConfigOrDie(config)
//		...
//	}
//
// All tests of a `go test ./...` share one server, which ends with the last process that uses it, however that ends. What is wrong ends
// the test with one line that has the remedy.
package pintletest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	goruntime "runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pintle/pintle/clients/go/internal/manifest"
	"github.com/pintle/pintle/clients/go/internal/shared"
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
	shared *shared.Workspace
}

// Template is a workspace for forks. Nothing can be written to it.
type Template struct {
	shared *shared.Workspace
}

// Start returns the configuration of clients of a new workspace, which ends with the test.
func Start(t testing.TB, options ...Options) *rest.Config {
	t.Helper()
	return New(t, options...).Config()
}

// Stop ends the use of the server by this process, which otherwise is that of its end. It is meant for TestMain, after the tests.
func Stop() { shared.Leave() }

// New creates a workspace, which ends with the test. That of a test that fails stays as long as the server.
func New(t testing.TB, options ...Options) *Workspace {
	t.Helper()
	server, paths := join(t, options)
	if len(paths) == 0 {
		created, err := server.Workspace(nil)
		return owned(t, created, err)
	}
	key, err := digest(paths)
	check(t, err)
	template, err := server.Template(key, func(workspace *shared.Workspace) error { return apply(workspace, paths) })
	check(t, err)
	created, err := template.Fork()
	return owned(t, created, err)
}

// NewTemplate returns the template of a key. The first of all processes of the test run that asks for it calls build; the others wait.
// The options are what the template begins with. The file that defines build is part of the key: two files that chose one name would
// otherwise get each other's objects.
func NewTemplate(t testing.TB, key string, build func(*Workspace) error, options ...Options) *Template {
	t.Helper()
	server, paths := join(t, options)
	template, err := server.Template(fmt.Sprintf("named %s %s", fileOf(build), key), func(workspace *shared.Workspace) error {
		if err := apply(workspace, paths); err != nil {
			return err
		}
		return build(&Workspace{workspace})
	})
	check(t, err)
	return &Template{template}
}

// fileOf is the file that defines a function.
func fileOf(build func(*Workspace) error) string {
	pointer := reflect.ValueOf(build).Pointer()
	file, _ := goruntime.FuncForPC(pointer).FileLine(pointer)
	return file
}

// Fork creates a workspace that begins with everything in the template, and ends with the test.
func (template *Template) Fork(t testing.TB) *Workspace {
	t.Helper()
	forked, err := template.shared.Fork()
	return owned(t, forked, err)
}

// Fork creates a workspace that begins with everything in this one, and ends with the test.
func (w *Workspace) Fork(t testing.TB) *Workspace {
	t.Helper()
	forked, err := w.shared.Fork()
	return owned(t, forked, err)
}

// Name is the name of the workspace, for `pintle workspace`.
func (w *Workspace) Name() string { return w.shared.Name }

// Config returns the configuration of clients, as a user that may do everything.
func (w *Workspace) Config() *rest.Config { return w.shared.Config() }

// Kubeconfig returns the path of a kubeconfig, which exists as long as the workspace.
func (w *Workspace) Kubeconfig() (string, error) { return w.shared.Kubeconfig() }

// Apply applies manifests server-side: files, and directories with everything below them.
func (w *Workspace) Apply(paths ...string) error { return apply(w.shared, paths) }

// ApplyObjects applies objects server-side: any `client.Object` of controller-runtime, typed or unstructured. One of a kind that is not
// built in needs its `TypeMeta`.
func (w *Workspace) ApplyObjects(objects ...runtime.Object) error {
	converted := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		var err error
		if converted[i], err = manifest.Unstructured(object); err != nil {
			return err
		}
	}
	return applyObjects(w.shared, converted)
}

// Reset puts the workspace back to what it began as. Its watches end.
func (w *Workspace) Reset() error { return w.shared.Reset() }

func join(t testing.TB, options []Options) (*shared.Server, []string) {
	t.Helper()
	var flags, paths []string
	for _, option := range options {
		flags, paths = append(flags, option.Flags...), append(paths, option.CRDPaths...)
	}
	server, err := shared.Join(flags)
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
func owned(t testing.TB, created *shared.Workspace, err error) *Workspace {
	t.Helper()
	check(t, err)
	logSize := created.Server.LogSize()
	t.Cleanup(func() {
		t.Helper()
		if t.Failed() {
			show(t, created, logSize)
		} else if err := created.Delete(); err != nil {
			t.Errorf("pintletest: %v", err)
		}
	})
	return &Workspace{created}
}

// show logs how to look into the workspace of a test that has failed, and what the server has logged meanwhile.
func show(t testing.TB, kept *shared.Workspace, logSize int64) {
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
	if changes, err := kept.Changes(); err != nil {
		t.Logf("pintletest: the changes of the workspace cannot be listed: %v", err)
	} else if changes != "" {
		t.Logf("what differs from the beginning of the workspace:\n%s", changes)
	}
}

func apply(workspace *shared.Workspace, paths []string) error {
	objects, err := manifest.Read(paths...)
	if err != nil {
		return err
	}
	return applyObjects(workspace, objects)
}

func applyObjects(workspace *shared.Workspace, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	applier, err := manifest.NewApplier(workspace.Config())
	if err != nil {
		return err
	}
	return applier.Apply(context.Background(), objects...)
}

// digest names what files contain, so that packages with the same definitions share a template.
func digest(paths []string) (string, error) {
	all := sha256.New()
	for _, path := range paths {
		files, err := manifest.Files(path)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			sum := sha256.Sum256(content)
			all.Write(sum[:])
		}
	}
	return "paths " + hex.EncodeToString(all.Sum(nil)), nil
}
