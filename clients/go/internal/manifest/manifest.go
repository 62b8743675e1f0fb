// Package manifest reads objects from files, and applies them.
package manifest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var extensions = []string{".yaml", ".yml", ".json"}

// what others need is applied first
var first = []string{"Namespace", "CustomResourceDefinition"}

// Files returns the files of manifests: a path that is a file, or those below one that is a directory, in order.
func Files(path string) ([]string, error) {
	status, err := os.Stat(path)
	if err != nil || !status.IsDir() {
		return []string{path}, err
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains(extensions, filepath.Ext(file)) {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

// Read returns the objects of files and directories.
func Read(paths ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		files, err := Files(path)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s has no file that ends with .yaml, .yml or .json", path)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			// what lies beside manifests, such as the files of kustomize, is none
			decode := Decode
			if file != path {
				decode = DecodeObjects
			}
			found, err := decode(content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

// Decode returns the objects of documents, and those in lists. Other documents are an error.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	return decode(content, func([]byte) bool { return true })
}

// DecodeObjects is Decode without other documents, and without those that are for kustomize.
func DecodeObjects(content []byte) ([]*unstructured.Unstructured, error) {
	return decode(content, func(text []byte) bool {
		var document metav1.TypeMeta
		err := json.Unmarshal(text, &document)
		return err == nil && document.Kind != "" && document.APIVersion != "" && !strings.HasPrefix(document.APIVersion, "kustomize.config.k8s.io/")
	})
}

func decode(content []byte, isWanted func([]byte) bool) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(text) == "null" || !isWanted(text) {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		list, err := object.ToList()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
}

// Applier applies objects server-side.
type Applier struct {
	discovery *discovery.DiscoveryClient
	client    *dynamic.DynamicClient
	lock      sync.Mutex
	kinds     map[schema.GroupVersionKind]metav1.APIResource
}

// NewApplier makes an Applier of a configuration.
func NewApplier(config *rest.Config) (*Applier, error) {
	discovery, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	return &Applier{discovery: discovery, client: client, kinds: map[schema.GroupVersionKind]metav1.APIResource{}}, err
}

// Apply applies objects, with those that others need first.
func (a *Applier) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	rank := func(object *unstructured.Unstructured) int {
		if i := slices.Index(first, object.GetKind()); i >= 0 {
			return i
		}
		return len(first)
	}
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	for _, object := range objects {
		if err := a.apply(ctx, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (a *Applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	found, err := a.resource(object.GroupVersionKind())
	if err != nil {
		return err
	}
	resource := a.client.Resource(object.GroupVersionKind().GroupVersion().WithResource(found.Name))
	options := metav1.ApplyOptions{FieldManager: "pintletest", Force: true}
	if !found.Namespaced {
		_, err = resource.Apply(ctx, object.GetName(), object, options)
		return err
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	_, err = resource.Namespace(namespace).Apply(ctx, object.GetName(), object, options)
	return err
}

func (a *Applier) resource(kind schema.GroupVersionKind) (metav1.APIResource, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if found, ok := a.kinds[kind]; ok {
		return found, nil
	}
	// an error if the group is not served, which the missing kind says better
	list, err := a.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err == nil {
		for _, found := range list.APIResources {
			if !isSubresource(found.Name) {
				a.kinds[kind.GroupVersion().WithKind(found.Kind)] = found
			}
		}
	}
	if found, ok := a.kinds[kind]; ok {
		return found, nil
	}
	return metav1.APIResource{}, fmt.Errorf("no matches for kind %q in version %q: apply its CustomResourceDefinition first", kind.Kind, kind.GroupVersion())
}

func isSubresource(name string) bool {
	return strings.Contains(name, "/")
}

// Unstructured converts an object. The type of a built-in one is known without its TypeMeta.
func Unstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	if already, ok := object.(*unstructured.Unstructured); ok {
		return already, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{Object: fields}
	if converted.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return nil, fmt.Errorf("%T has no TypeMeta, and is not built in", object)
		}
		converted.SetGroupVersionKind(kinds[0])
	}
	// typed objects have these fields even if nothing is in them
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	return converted, nil
}
