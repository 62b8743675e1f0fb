// Package envtest takes the place of sigs.k8s.io/controller-runtime/pkg/envtest: tests change the import, and need no kube-apiserver and
// no etcd. An Environment is a workspace of the server that all tests of a `go test ./...` share.
package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pintle/pintle/clients/go/clientgo"
	"github.com/pintle/pintle/clients/go/pintle"
)

// Environment is a Kubernetes API for tests, with the fields of that of controller-runtime. There is no ControlPlane, since an
// environment has no processes of its own.
type Environment struct {
	// Config is what Start returns. With UseExistingCluster it may be given.
	Config *rest.Config
	// KubeConfig is the content of a kubeconfig, after Start.
	KubeConfig []byte

	// Scheme says which kinds have conversion webhooks: those with a hub. By default it is that of client-go.
	Scheme *runtime.Scheme

	CRDInstallOptions     CRDInstallOptions
	WebhookInstallOptions WebhookInstallOptions

	// CRDs, CRDDirectoryPaths and ErrorIfCRDPathMissing are added to CRDInstallOptions. After Start, CRDs are all that are installed.
	CRDs                  []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths     []string
	ErrorIfCRDPathMissing bool

	// UseExistingCluster takes the cluster of Config or of the kubeconfig of the environment. Without a value, the variable
	// USE_EXISTING_CLUSTER decides.
	UseExistingCluster *bool

	// Flags are flags of `pintle serve`, which controller-runtime does not have. Environments with other flags have another server.
	Flags []string

	// These are there so that tests compile. They have no effect: nothing is downloaded, and nothing waits for long.
	BinaryAssetsDirectory        string
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string
	ControlPlaneStartTimeout     time.Duration
	ControlPlaneStopTimeout      time.Duration
	AttachControlPlaneOutput     bool

	workspace *pintle.Workspace
}

func (e *Environment) usesExistingCluster() bool {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster
	}
	return os.Getenv("USE_EXISTING_CLUSTER") == "true"
}

// Start creates the API, and installs the definitions and webhooks.
func (e *Environment) Start() (*rest.Config, error) {
	if err := e.open(); err != nil {
		return nil, fmt.Errorf("envtest: %w", err)
	}
	if err := e.install(); err != nil {
		return nil, errors.Join(fmt.Errorf("envtest: %w", err), e.Stop())
	}
	return e.Config, nil
}

func (e *Environment) open() error {
	name := "existing"
	if e.usesExistingCluster() {
		if e.Config == nil {
			loading := clientcmd.NewDefaultClientConfigLoadingRules()
			config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, nil).ClientConfig()
			if err != nil {
				return err
			}
			e.Config = config
		}
	} else {
		ctx := context.Background()
		server, err := pintle.Start(ctx, e.Flags...)
		if err != nil {
			return err
		}
		if e.workspace, err = server.Workspace(ctx, nil); err != nil {
			return err
		}
		e.Config, name = clientgo.Config(e.workspace), e.workspace.Name
	}
	if len(e.KubeConfig) > 0 {
		return nil
	}
	var err error
	e.KubeConfig, err = kubeconfigOf(name, e.Config)
	return err
}

func (e *Environment) install() error {
	if e.Scheme == nil {
		e.Scheme = scheme.Scheme
	}
	webhooks := &e.WebhookInstallOptions
	if err := webhooks.PrepWithoutInstalling(); err != nil {
		return err
	}
	options := &e.CRDInstallOptions
	if options.Scheme == nil {
		options.Scheme = e.Scheme
	}
	options.CRDs = append(options.CRDs, e.CRDs...)
	options.Paths = append(options.Paths, e.CRDDirectoryPaths...)
	options.ErrorIfPathMissing = options.ErrorIfPathMissing || e.ErrorIfCRDPathMissing
	options.WebhookOptions = *webhooks
	installed, err := InstallCRDs(e.Config, *options)
	if err != nil {
		return err
	}
	e.CRDs = installed
	return webhooks.Install(e.Config)
}

// Stop deletes the API with all that is in it. In an existing cluster, it deletes the definitions if CleanUpAfterUse says so.
func (e *Environment) Stop() error {
	err := e.WebhookInstallOptions.Cleanup()
	if e.workspace != nil {
		deleted := e.workspace.Delete(context.Background())
		e.workspace = nil
		return errors.Join(err, deleted)
	}
	if e.CRDInstallOptions.CleanUpAfterUse && e.Config != nil {
		return errors.Join(err, UninstallCRDs(e.Config, e.CRDInstallOptions))
	}
	return err
}

// User is a user of the API.
type User struct {
	Name   string
	Groups []string
}

// AuthenticatedUser is a user with credentials.
type AuthenticatedUser struct {
	config *rest.Config
}

// AddUser returns credentials of a user: those of the administrator, who acts for the user. The user has the permissions that RBAC gives.
// Other fields of the configuration, such as QPS, are those of base.
func (e *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	if e.Config == nil {
		return nil, errors.New("envtest: AddUser is called before Start")
	}
	config := rest.CopyConfig(e.Config)
	if base != nil {
		config = rest.CopyConfig(base)
		config.Host, config.TLSClientConfig = e.Config.Host, e.Config.TLSClientConfig
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: user.Groups}
	return &AuthenticatedUser{config}, nil
}

// Config returns the configuration of clients of the user.
func (u *AuthenticatedUser) Config() *rest.Config { return rest.CopyConfig(u.config) }

// KubeConfig returns the content of a kubeconfig of the user.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) {
	return kubeconfigOf("user", u.config)
}

// kubeconfigOf is a kubeconfig with one context.
func kubeconfigOf(name string, config *rest.Config) ([]byte, error) {
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
