package shared

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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

var resource = schema.GroupVersionResource{Group: "workspaces.pintle.dev", Version: "v1alpha1", Resource: "workspaces"}

// Workspace is an API of its own.
type Workspace struct {
	Server *Server
	Name   string
}

// template is built once in this process, and once in the test run.
type template struct {
	once      sync.Once
	workspace *Workspace
	err       error
}

// random is a part of a name that no other one has.
func random() string {
	return strings.ReplaceAll(string(uuid.NewUUID()), "-", "")[:16]
}

// Workspace creates a workspace with the fields of its specification.
func (s *Server) Workspace(spec map[string]any) (*Workspace, error) {
	return s.named("w-"+random(), spec)
}

func (s *Server) named(name string, spec map[string]any) (*Workspace, error) {
	if spec == nil {
		spec = map[string]any{}
	}
	// it can be used when the response comes
	if err := s.post("/clusters/"+name, spec); err != nil {
		return nil, err
	}
	return &Workspace{s, name}, nil
}

// post sends an object to a path that is not one of a resource. Errors of the API are those of client-go.
func (s *Server) post(path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	response, err := s.http.Post(s.URL+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusBadRequest {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	var status metav1.Status
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return apierrors.FromObject(&status)
}

func (w *Workspace) get() (*unstructured.Unstructured, error) {
	return w.Server.client.Resource(resource).Get(context.Background(), w.Name, metav1.GetOptions{})
}

func (w *Workspace) patch(spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = w.Server.client.Resource(resource).Patch(context.Background(), w.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Fork creates a workspace that begins with everything in this one.
func (w *Workspace) Fork() (*Workspace, error) {
	return w.Server.Workspace(map[string]any{"from": map[string]any{"workspace": w.Name}})
}

// Reset puts the workspace back to what it began as. Its watches end.
func (w *Workspace) Reset() error {
	// it is done when the response comes
	return w.patch(map[string]any{"reset": random()})
}

// Delete deletes the workspace, with all that is in it.
func (w *Workspace) Delete() error {
	os.Remove(w.kubeconfig())
	err := w.Server.client.Resource(resource).Delete(context.Background(), w.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Config is the configuration of clients.
func (w *Workspace) Config() *rest.Config {
	return w.Server.Config(w.Name)
}

func (w *Workspace) kubeconfig() string {
	return filepath.Join(w.Server.Data, w.Name+".kubeconfig")
}

// Kubeconfig writes a kubeconfig, which exists as long as the server, and returns its path.
func (w *Workspace) Kubeconfig() (string, error) {
	content, err := KubeconfigOf(w.Name, w.Config())
	if err != nil {
		return "", err
	}
	return w.kubeconfig(), os.WriteFile(w.kubeconfig(), content, 0o600)
}

// KubeconfigOf is a kubeconfig with one context.
func KubeconfigOf(name string, config *rest.Config) ([]byte, error) {
	file := clientcmdapi.NewConfig()
	file.CurrentContext = name
	file.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile, InsecureSkipTLSVerify: config.Insecure,
	}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientCertificate: config.CertFile, ClientKeyData: config.KeyData, ClientKey: config.KeyFile,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, Username: config.Username, Password: config.Password,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	return clientcmd.Write(*file)
}

// Template returns the template of a key. The first process that asks for it calls build with the new workspace; the others wait.
func (s *Server) Template(key string, build func(*Workspace) error) (*Workspace, error) {
	found, _ := s.templates.LoadOrStore(key, &template{})
	entry := found.(*template)
	entry.once.Do(func() {
		// stays if build ends the goroutine
		entry.err = fmt.Errorf("the template %q has not been built: see the first test that failed", key)
		entry.workspace, entry.err = s.template(key, build)
	})
	return entry.workspace, entry.err
}

func (s *Server) template(key string, build func(*Workspace) error) (*Workspace, error) {
	sum := sha256.Sum256([]byte(key))
	name := "t-" + hex.EncodeToString(sum[:8])
	for until := time.Now().Add(buildTime); time.Now().Before(until); time.Sleep(buildLook) {
		// the lifetime ends it if its builder dies, and another process builds it
		workspace, err := s.named(name, map[string]any{"ttl": lease.String()})
		if err == nil {
			return workspace, workspace.build(build)
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		workspace = &Workspace{s, name}
		if found, err := workspace.get(); err == nil {
			if isBuilt, _, _ := unstructured.NestedBool(found.Object, "spec", "template"); isBuilt {
				return workspace, nil
			}
		} else if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the template %q has not been built within %s", key, buildTime)
}

// build fills and seals a template. Without success it is deleted, also if build ends the goroutine, as t.FailNow does.
func (w *Workspace) build(build func(*Workspace) error) (err error) {
	isBuilt := false
	stop, stopped := make(chan struct{}), make(chan struct{})
	go w.renew(stop, stopped)
	defer func() {
		if !isBuilt {
			close(stop)
			w.Delete()
		}
	}()
	if err := build(w); err != nil {
		return err
	}
	close(stop)
	// before the last change, which a renewal must not follow
	<-stopped
	isBuilt = true
	return w.patch(map[string]any{"template": true, "ttl": nil})
}

// renew prolongs the lifetime of a template that is being built.
func (w *Workspace) renew(stop, stopped chan struct{}) {
	defer close(stopped)
	began, ticks := time.Now(), time.NewTicker(renewal)
	defer ticks.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticks.C:
			// a renewal that fails is made good by the next one
			w.patch(map[string]any{"ttl": (time.Since(began) + lease).Round(time.Second).String()})
		}
	}
}

// Changes returns the objects that were created, changed or deleted since the workspace began, one a line.
func (w *Workspace) Changes() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), diffTime)
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
