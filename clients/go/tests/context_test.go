package tests

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/clients/go/pintle"
	"github.com/pintle/pintle/clients/go/pintletest"
)

// TestTheCoreNeedsNoClientGo: the module clients/go brings one dependency, so that operators of any age can have it.
func TestTheCoreNeedsNoClientGo(t *testing.T) {
	list := exec.Command("go", "list", "-m", "all")
	list.Dir = ".."
	output, err := list.CombinedOutput()
	if modules := strings.Fields(string(output)); err != nil || len(modules) != 3 || modules[1] != "go.yaml.in/yaml/v2" {
		t.Fatalf("%v: %s", err, output)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	ended, end := context.WithCancel(ctx)
	end()
	workspace := pintletest.New(t, options)
	for name, call := range map[string]func() error{
		"start":     func() error { _, err := pintle.Start(ended, "--qps=1"); return err },
		"workspace": func() error { _, err := workspace.Server.Workspace(ended, nil); return err },
		"template": func() error {
			_, err := workspace.Server.Template(ended, "ended", func(*pintle.Workspace) error { return nil })
			return err
		},
		"fork":   func() error { _, err := workspace.Workspace.Fork(ended); return err },
		"reset":  func() error { return workspace.Reset(ended) },
		"delete": func() error { return workspace.Delete(ended) },
		"apply":  func() error { return workspace.Apply(ended, "testdata/boats") },
		"clock":  func() error { return workspace.Clock().Stop(ended) },
		"report": func() error { _, err := workspace.Report(ended); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAbandonedTemplatesAreBuiltAgain by one who waits for the builder whose context ends.
func TestAbandonedTemplatesAreBuiltAgain(t *testing.T) {
	server := pintletest.New(t).Server
	abandoned, abandon := context.WithCancel(ctx)
	isBuilding, failed := make(chan struct{}), make(chan error)
	go func() {
		_, err := server.Template(abandoned, "abandoned", func(workspace *pintle.Workspace) error {
			close(isBuilding)
			<-abandoned.Done()
			return workspace.Apply(abandoned, "testdata/boats")
		})
		failed <- err
	}()
	<-isBuilding
	built := make(chan error)
	go func() {
		_, err := server.Template(ctx, "abandoned", func(workspace *pintle.Workspace) error { return workspace.Apply(ctx, "testdata/boats") })
		built <- err
	}()
	abandon()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-built; err != nil {
		t.Error(err)
	}
}

// TestRequests need no client-go.
func TestRequests(t *testing.T) {
	workspace := pintletest.New(t, options)
	const boats = "/apis/example.com/v1/namespaces/default/boats"
	var created, list struct {
		Spec  struct{ Crew int }
		Items []any
	}
	boat := map[string]any{"apiVersion": "example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": "mary"}, "spec": map[string]any{}}
	if err := workspace.Request(ctx, http.MethodPost, boats, boat, &created); err != nil || created.Spec.Crew != 3 {
		t.Fatal(created, err)
	}
	if err := workspace.Request(ctx, http.MethodPatch, boats+"/mary", map[string]any{"spec": map[string]any{"crew": 5}}, &created); err != nil || created.Spec.Crew != 5 {
		t.Fatal(created, err)
	}
	if err := workspace.Request(ctx, http.MethodGet, boats, nil, &list); err != nil || len(list.Items) != 3 {
		t.Fatal(list, err)
	}
	var status *pintle.StatusError
	if err := workspace.Request(ctx, http.MethodPost, boats, boat, nil); !errors.As(err, &status) || status.Reason != "AlreadyExists" || status.Code != 409 {
		t.Fatal(err)
	}
	if err := workspace.Request(ctx, http.MethodGet, "/no/such/path", nil, nil); !errors.As(err, &status) || status.Code != 404 {
		t.Fatal(err)
	}
	response, err := workspace.HTTPClient().Get(workspace.URL() + "/readyz")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	response.Body.Close()
}

func TestASourceIsLoadedByAFlag(t *testing.T) {
	source, uid := t.TempDir(), "3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab"
	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, uid: " + uid + "}}"
	if err := os.WriteFile(filepath.Join(source, "a.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := pintle.Start(ctx, "--from="+source)
	if err != nil {
		t.Fatal(err)
	}
	workspace, err := server.Workspace(ctx, map[string]any{"from": map[string]any{"workspace": "default"}})
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Metadata struct{ UID string } }
	if err := workspace.Request(ctx, http.MethodGet, "/api/v1/namespaces/shop/configmaps/a", nil, &found); err != nil || found.Metadata.UID != uid {
		t.Fatal(found, err)
	}
}
