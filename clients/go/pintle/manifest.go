package pintle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"go.yaml.in/yaml/v2"
)

// manifest is an object to apply.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	body json.RawMessage
}

// rank orders manifests: those that others need come first.
func (m *manifest) rank() int {
	switch m.Kind {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

func newManifest(fields any) (*manifest, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	decoded := &manifest{body: body}
	if err := json.Unmarshal(body, decoded); err != nil {
		return nil, err
	}
	if decoded.APIVersion == "" || decoded.Kind == "" {
		return nil, errors.New("an object without apiVersion and kind")
	}
	return decoded, nil
}

// files returns the files of manifests: a path that is a file, or those below one that is a directory, in order.
func files(path string) ([]string, error) {
	status, err := os.Stat(path)
	if err != nil || !status.IsDir() {
		return []string{path}, err
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(file) {
		case ".yaml", ".yml", ".json":
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// read returns the objects of files and directories.
func read(paths []string) ([]*manifest, error) {
	var manifests []*manifest
	for _, path := range paths {
		found, err := files(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no file that ends with .yaml, .yml or .json", path)
		}
		for _, file := range found {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			isWanted := func(map[string]any) bool { return true }
			if file != path {
				// directories also hold files that are no manifests, such as those of kustomize
				isWanted = isManifest
			}
			decoded, err := decode(content, isWanted)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			manifests = append(manifests, decoded...)
		}
	}
	return manifests, nil
}

func isManifest(fields map[string]any) bool {
	kind, _ := fields["kind"].(string)
	version, _ := fields["apiVersion"].(string)
	return kind != "" && version != "" && !strings.HasPrefix(version, "kustomize.config.k8s.io/")
}

// decode returns the objects of the documents that are wanted, and those in lists.
func decode(content []byte, isWanted func(map[string]any) bool) ([]*manifest, error) {
	var manifests []*manifest
	documents := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return manifests, nil
		}
		if err != nil {
			return nil, err
		}
		converted, err := jsonable(document)
		if err != nil {
			return nil, err
		}
		fields, _ := converted.(map[string]any)
		if converted == nil || !isWanted(fields) {
			continue
		}
		for _, object := range expand(fields) {
			decoded, err := newManifest(object)
			if err != nil {
				return nil, err
			}
			manifests = append(manifests, decoded)
		}
	}
}

// expand returns the items of a list, which may leave their type to it, or the object itself.
func expand(fields map[string]any) []any {
	items, isList := fields["items"].([]any)
	if !isList {
		return []any{fields}
	}
	kind, _ := fields["kind"].(string)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok && object["kind"] == nil && object["apiVersion"] == nil && kind != "List" {
			object["kind"], object["apiVersion"] = strings.TrimSuffix(kind, "List"), fields["apiVersion"]
		}
	}
	return items
}

// jsonable converts the maps of YAML, whose keys have any type, to those of JSON.
func jsonable(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case map[any]any:
		converted := make(map[string]any, len(value))
		for key, element := range value {
			switch key.(type) {
			case string, int, int64, uint64, float64, bool:
			default:
				return nil, fmt.Errorf("a key of type %T", key)
			}
			if converted[fmt.Sprint(key)], err = jsonable(element); err != nil {
				return nil, err
			}
		}
		return converted, nil
	case []any:
		for i, element := range value {
			if value[i], err = jsonable(element); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// digest names the content of files, so that packages with the same definitions share a template.
func digest(paths []string) (string, error) {
	all := sha256.New()
	for _, path := range paths {
		found, err := files(path)
		if err != nil {
			return "", err
		}
		for _, file := range found {
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

// Apply applies manifests server-side: files, and directories with everything below them.
func (w *Workspace) Apply(ctx context.Context, paths ...string) error {
	manifests, err := read(paths)
	if err != nil {
		return err
	}
	return w.apply(ctx, manifests)
}

// ApplyObjects applies objects server-side: maps, and others whose JSON has apiVersion and kind.
func (w *Workspace) ApplyObjects(ctx context.Context, objects ...any) error {
	manifests := make([]*manifest, len(objects))
	for i, object := range objects {
		fields, err := fieldsOf(object)
		if err != nil {
			return err
		}
		if manifests[i], err = newManifest(fields); err != nil {
			return fmt.Errorf("%T: %w", object, err)
		}
	}
	return w.apply(ctx, manifests)
}

// fieldsOf removes what typed objects have in their JSON although it was never set.
func fieldsOf(object any) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields, metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%T: %w", object, err)
	}
	if string(fields["status"]) == "{}" {
		delete(fields, "status")
	}
	if json.Unmarshal(fields["metadata"], &metadata) == nil && string(metadata["creationTimestamp"]) == "null" {
		delete(metadata, "creationTimestamp")
		fields["metadata"], err = json.Marshal(metadata)
	}
	return fields, err
}

func (w *Workspace) apply(ctx context.Context, manifests []*manifest) error {
	sort.SliceStable(manifests, func(i, j int) bool { return manifests[i].rank() < manifests[j].rank() })
	kinds := kinds{}
	for _, object := range manifests {
		path, err := kinds.path(ctx, w, object)
		if err == nil {
			err = w.Server.request(ctx, http.MethodPatch, w.URL()+path+"?fieldManager=pintletest&force=true", applyPatch, object.body, nil)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.Kind, object.Metadata.Name, err)
		}
	}
	return nil
}

// kinds are the resources of the kinds that discovery has shown, by apiVersion and kind.
type kinds map[[2]string]apiResource

type apiResource struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// path returns the path of an object.
func (k kinds) path(ctx context.Context, w *Workspace, object *manifest) (string, error) {
	if object.Metadata.Name == "" {
		return "", errors.New("metadata.name is required")
	}
	group := "/apis/" + object.APIVersion
	if !strings.Contains(object.APIVersion, "/") {
		group = "/api/" + object.APIVersion
	}
	key := [2]string{object.APIVersion, object.Kind}
	if _, ok := k[key]; !ok {
		if err := k.discover(ctx, w, group, object.APIVersion); err != nil {
			return "", err
		}
	}
	found, ok := k[key]
	if !ok {
		return "", fmt.Errorf("no matches for kind %q in version %q: apply its CustomResourceDefinition first", object.Kind, object.APIVersion)
	}
	resource := found.Name + "/" + url.PathEscape(object.Metadata.Name)
	if !found.Namespaced {
		return group + "/" + resource, nil
	}
	namespace := object.Metadata.Namespace
	if namespace == "" {
		namespace = "default"
	}
	return group + "/namespaces/" + url.PathEscape(namespace) + "/" + resource, nil
}

// discover adds the kinds of a version, which may have none.
func (k kinds) discover(ctx context.Context, w *Workspace, group, version string) error {
	var list struct {
		Resources []apiResource `json:"resources"`
	}
	err := w.Request(ctx, http.MethodGet, group, nil, &list)
	if isNotFound(err) {
		return nil
	}
	for _, found := range list.Resources {
		if !strings.Contains(found.Name, "/") {
			k[[2]string{version, found.Kind}] = found
		}
	}
	return err
}
