package envtest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	maxWait = 10 * time.Second
	// a workspace serves a definition when it has been created
	pollInterval = 5 * time.Millisecond
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// CRDInstallOptions says which definitions are installed, and how.
type CRDInstallOptions struct {
	// Scheme says which kinds have conversion webhooks: those with a hub.
	Scheme *runtime.Scheme
	// Paths are files and directories. Directories below them are not read.
	Paths []string
	CRDs  []*apiextensionsv1.CustomResourceDefinition
	// ErrorIfPathMissing makes a path that does not exist an error.
	ErrorIfPathMissing bool
	MaxTime            time.Duration
	PollInterval       time.Duration
	// CleanUpAfterUse deletes the definitions from an existing cluster.
	CleanUpAfterUse bool
	WebhookOptions  WebhookInstallOptions
}

// InstallCRDs creates or updates definitions, and returns when they are served.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if err := ReadCRDFiles(&options); err != nil {
		return nil, err
	}
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	if err := setConversion(options); err != nil {
		return nil, err
	}
	if err := CreateCRDs(config, options.CRDs); err != nil {
		return options.CRDs, err
	}
	return options.CRDs, WaitForCRDs(config, options.CRDs, options)
}

// ReadCRDFiles adds the definitions in the paths to CRDs. Of several with a name, the last one counts.
func ReadCRDFiles(options *CRDInstallOptions) error {
	objects, err := read(options.Paths, options.ErrorIfPathMissing)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := convert(object, definition); err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
		kept := options.CRDs[:0:0]
		for _, other := range options.CRDs {
			if other.Name != definition.Name {
				kept = append(kept, other)
			}
		}
		options.CRDs = append(kept, definition)
	}
	return nil
}

// convert converts between typed objects and others by their JSON.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// CreateCRDs creates or updates definitions, which become what is stored.
func CreateCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range crds {
		definition.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
		if err := store(config, definitions, definition); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", definition.Name, err)
		}
	}
	return nil
}

// store creates or updates an object, which becomes what is stored.
func store(config *rest.Config, resource schema.GroupVersionResource, typed metav1.Object) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := convert(typed, object); err != nil {
		return err
	}
	// the object may be what was installed elsewhere
	object.SetResourceVersion("")
	object.SetUID("")
	ctx := context.Background()
	stored, err := client.Resource(resource).Create(ctx, object, metav1.CreateOptions{})
	for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		existing, failed := client.Resource(resource).Get(ctx, object.GetName(), metav1.GetOptions{})
		if failed != nil {
			return failed
		}
		object.SetResourceVersion(existing.GetResourceVersion())
		stored, err = client.Resource(resource).Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return convert(stored, typed)
}

// WaitForCRDs returns when the served versions of definitions are in discovery.
func WaitForCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, options CRDInstallOptions) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	limit, interval := options.MaxTime, options.PollInterval
	if limit == 0 {
		limit = maxWait
	}
	if interval == 0 {
		interval = pollInterval
	}
	until := time.Now().Add(limit)
	for _, definition := range crds {
		for _, version := range definition.Spec.Versions {
			for version.Served && !isServed(client, definition, version.Name) {
				if time.Now().After(until) {
					return fmt.Errorf("version %s of CustomResourceDefinition %s is not served after %s", version.Name, definition.Name, limit)
				}
				time.Sleep(interval)
			}
		}
	}
	return nil
}

func isServed(client *discovery.DiscoveryClient, definition *apiextensionsv1.CustomResourceDefinition, version string) bool {
	list, err := client.ServerResourcesForGroupVersion(definition.Spec.Group + "/" + version)
	if err != nil {
		return false
	}
	for _, found := range list.APIResources {
		if found.Name == definition.Spec.Names.Plural {
			return true
		}
	}
	return false
}

// UninstallCRDs deletes definitions, if they are there.
func UninstallCRDs(config *rest.Config, options CRDInstallOptions) error {
	if err := ReadCRDFiles(&options); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, definition := range options.CRDs {
		err := client.Resource(definitions).Delete(context.Background(), definition.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// setConversion sends the conversions of kinds with a hub to the webhooks of the test. Other kinds have none, since nothing serves them.
func setConversion(options CRDInstallOptions) error {
	webhooks := &options.WebhookOptions
	if len(webhooks.LocalServingCAData) == 0 {
		return nil
	}
	url := webhooks.url("/convert")
	for _, definition := range options.CRDs {
		kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
		switch {
		case definition.Spec.PreserveUnknownFields:
		case !webhooks.IgnoreSchemeConvertible && !hasHub(options.Scheme, kind):
			definition.Spec.Conversion = nil
		default:
			definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: webhooks.LocalServingCAData},
					ConversionReviewVersions: []string{"v1", "v1beta1"},
				},
			}
		}
	}
	return nil
}

// hasHub returns whether one version of a kind is the hub of controller-runtime's conversion, and another converts to it. The
// interfaces are those of controller-runtime, so they are known by their methods.
func hasHub(scheme *runtime.Scheme, kind schema.GroupKind) bool {
	hubs, spokes := 0, 0
	for known, version := range scheme.AllKnownTypes() {
		if known.GroupKind() != kind || known.Version == runtime.APIVersionInternal {
			continue
		}
		pointer := reflect.PointerTo(version)
		if _, isHub := pointer.MethodByName("Hub"); isHub {
			hubs++
		} else if _, isSpoke := pointer.MethodByName("ConvertTo"); isSpoke {
			spokes++
		}
	}
	return hubs == 1 && spokes > 0
}
