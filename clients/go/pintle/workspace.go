package pintle

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	buildTime = 300 * time.Second
	buildLook = 5 * time.Millisecond
	// how long the name of a template stays taken after its builder has died
	lease   = 10 * time.Second
	renewal = 3 * time.Second
	// for the changes of the workspace of a test that has failed
	diffTime  = 10 * time.Second
	diffLines = 50
)

const workspaces = "/apis/workspaces.pintle.dev/v1alpha1/workspaces/"

// Workspace is a Kubernetes API of its own.
type Workspace struct {
	Server *Server
	// Name is the name of the workspace, for `pintle workspace`.
	Name string
	// uid is empty unless another workspace may get the name
	uid string
}

// random is a part of a name that no other one has.
func random() string {
	var name [8]byte
	// if it fails, the API refuses the second workspace, whose name is taken
	rand.Read(name[:])
	return hex.EncodeToString(name[:])
}

// Workspace creates a workspace with the fields of its specification, which may be nil.
func (s *Server) Workspace(ctx context.Context, spec map[string]any) (*Workspace, error) {
	return s.named(ctx, "w-"+random(), spec)
}

func (s *Server) named(ctx context.Context, name string, spec map[string]any) (*Workspace, error) {
	if spec == nil {
		spec = map[string]any{}
	}
	// it can be used when the response comes
	var kubeconfig struct {
		Clusters []struct{ Cluster struct{ Server string } }
	}
	if err := s.request(ctx, http.MethodPost, s.URL+"/clusters/"+name, plain, spec, &kubeconfig); err != nil {
		return nil, err
	}
	workspace := &Workspace{Server: s, Name: name}
	for _, cluster := range kubeconfig.Clusters {
		// of a workspace that ends, the URL has the uid, since another one may get the name
		_, workspace.uid, _ = strings.Cut(path.Base(cluster.Cluster.Server), ".")
	}
	return workspace, nil
}

func (w *Workspace) isTemplate(ctx context.Context) (bool, error) {
	var found struct {
		Spec struct {
			Template bool `json:"template"`
		} `json:"spec"`
	}
	err := w.Server.request(ctx, http.MethodGet, w.Server.URL+workspaces+w.Name, plain, nil, &found)
	return found.Spec.Template, err
}

func (w *Workspace) patch(ctx context.Context, spec map[string]any) error {
	patch := map[string]any{"spec": spec}
	if w.uid != "" {
		patch["metadata"] = map[string]any{"uid": w.uid}
	}
	return w.Server.request(ctx, http.MethodPatch, w.Server.URL+workspaces+w.Name, mergePatch, patch, nil)
}

// Fork creates a workspace that begins with everything in this one.
func (w *Workspace) Fork(ctx context.Context) (*Workspace, error) {
	return w.Server.Workspace(ctx, map[string]any{"from": map[string]any{"workspace": w.Name}})
}

// Reset puts the workspace back to what it began as. Its watches end.
func (w *Workspace) Reset(ctx context.Context) error {
	// it is done when the response comes
	return w.patch(ctx, map[string]any{"reset": random()})
}

// Delete deletes the workspace, with all that is in it.
func (w *Workspace) Delete(ctx context.Context) error {
	os.Remove(w.kubeconfig())
	var options any
	if w.uid != "" {
		options = map[string]any{"preconditions": map[string]any{"uid": w.uid}}
	}
	err := w.Server.request(ctx, http.MethodDelete, w.Server.URL+workspaces+w.Name, plain, options, nil)
	var status *StatusError
	if errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusConflict) {
		// it is gone, and another one may have its name
		return nil
	}
	return err
}

// URL is where clients find the API.
func (w *Workspace) URL() string {
	if w.uid != "" {
		return w.Server.URL + "/clusters/" + w.Name + "." + w.uid
	}
	return w.Server.URL + "/clusters/" + w.Name
}

// Credentials are those of a user that may do everything.
func (w *Workspace) Credentials() Credentials { return w.Server.Credentials }

// HTTPClient returns a client with the credentials, which all workspaces of the server share.
func (w *Workspace) HTTPClient() *http.Client { return w.Server.client }

// Request sends a request for a path of the API, such as /api/v1/namespaces. The body is sent as JSON unless it is nil, with PATCH as a
// merge patch. The response is decoded into what response points to unless that is nil. If the API refuses, the error is a *StatusError.
func (w *Workspace) Request(ctx context.Context, method, path string, body, response any) error {
	contentType := plain
	if method == http.MethodPatch {
		contentType = mergePatch
	}
	return w.Server.request(ctx, method, w.URL()+path, contentType, body, response)
}

func (w *Workspace) kubeconfig() string {
	return filepath.Join(w.Server.Data, w.Name+".kubeconfig")
}

// Kubeconfig writes a kubeconfig, which exists as long as the server, and returns its path.
func (w *Workspace) Kubeconfig() (string, error) {
	encode := func(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }
	named := func(key string, value any) any { return []any{map[string]any{"name": w.Name, key: value}} }
	credentials := w.Credentials()
	// JSON is YAML
	content, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": w.Name,
		"clusters": named("cluster", map[string]any{
			"server": w.URL(), "certificate-authority-data": encode(credentials.CertificateAuthority),
		}),
		"users": named("user", map[string]any{
			"client-certificate-data": encode(credentials.Certificate), "client-key-data": encode(credentials.Key),
		}),
		"contexts": named("context", map[string]any{"cluster": w.Name, "user": w.Name, "namespace": "default"}),
	})
	if err != nil {
		return "", err
	}
	return w.kubeconfig(), os.WriteFile(w.kubeconfig(), content, 0o600)
}

// template is built once in this process, and once in the test run.
type template struct {
	built     chan struct{}
	workspace *Workspace
	err       error
	// isAbandoned if the context of its builder has ended: the next one who asks builds it
	isAbandoned bool
}

// Template returns the template of a key. The first process that asks for it calls build with the new workspace; the others wait.
func (s *Server) Template(ctx context.Context, key string, build func(*Workspace) error) (*Workspace, error) {
	for {
		own := &template{built: make(chan struct{})}
		found, isOther := s.templates.LoadOrStore(key, own)
		if !isOther {
			own.build(ctx, s, key, build)
		}
		entry := found.(*template)
		select {
		case <-entry.built:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !entry.isAbandoned || ctx.Err() != nil {
			return entry.workspace, entry.err
		}
	}
}

// TemplateOf returns the template with what manifests contain: files, and directories with everything below them.
func (s *Server) TemplateOf(ctx context.Context, paths ...string) (*Workspace, error) {
	key, err := digest(paths)
	if err != nil {
		return nil, err
	}
	return s.Template(ctx, key, func(workspace *Workspace) error { return workspace.Apply(ctx, paths...) })
}

func (entry *template) build(ctx context.Context, s *Server, key string, build func(*Workspace) error) {
	defer close(entry.built)
	// stays if build ends the goroutine
	entry.err = fmt.Errorf("the template %q has not been built: see the first test that failed", key)
	entry.workspace, entry.err = s.template(ctx, key, build)
	if entry.err != nil && ctx.Err() != nil {
		entry.isAbandoned = true
		s.templates.Delete(key)
	}
}

func (s *Server) template(ctx context.Context, key string, build func(*Workspace) error) (*Workspace, error) {
	sum := sha256.Sum256([]byte(key))
	name := "t-" + hex.EncodeToString(sum[:8])
	for until := time.Now().Add(buildTime); time.Now().Before(until); time.Sleep(buildLook) {
		// the lifetime ends it if its builder dies, and another process builds it
		workspace, err := s.named(ctx, name, map[string]any{"ttl": lease.String()})
		if err == nil {
			return workspace, workspace.build(ctx, build)
		}
		var status *StatusError
		if !errors.As(err, &status) || status.Reason != "AlreadyExists" {
			return nil, err
		}
		workspace = &Workspace{Server: s, Name: name}
		isBuilt, err := workspace.isTemplate(ctx)
		if isBuilt {
			return workspace, nil
		}
		if err != nil && !isNotFound(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the template %q has not been built within %s", key, buildTime)
}

// build fills and seals a template. Without success it is deleted, also if build ends the goroutine, as t.FailNow does.
func (w *Workspace) build(ctx context.Context, build func(*Workspace) error) (err error) {
	isBuilt := false
	renewing, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go w.renew(renewing, stopped)
	defer func() {
		stop()
		if !isBuilt {
			// also if the context has ended
			w.Delete(context.Background())
		}
	}()
	if err := build(w); err != nil {
		return err
	}
	stop()
	// before the last change, which a renewal must not follow
	<-stopped
	err = w.patch(ctx, map[string]any{"template": true, "ttl": nil})
	isBuilt = err == nil
	return err
}

// renew prolongs the lifetime of a template that is being built.
func (w *Workspace) renew(ctx context.Context, stopped chan struct{}) {
	defer close(stopped)
	began, ticks := time.Now(), time.NewTicker(renewal)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			// a renewal that fails is made good by the next one
			w.patch(ctx, map[string]any{"ttl": (time.Since(began) + lease).Round(time.Second).String()})
		}
	}
}

// Changes returns the objects that were created, changed or deleted since the workspace began, one a line.
func (w *Workspace) Changes(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, diffTime)
	defer cancel()
	command := exec.CommandContext(ctx, w.Server.program, "workspace", "diff", w.Name, "--kubeconfig", w.Server.Kubeconfig())
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(failure.String()))
	}
	lines := strings.SplitAfter(string(out), "\n")
	if len(lines) > diffLines {
		lines = append(lines[:diffLines], "...\n")
	}
	return strings.TrimSuffix(strings.Join(lines, ""), "\n"), nil
}
