package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A resource in one version, as discovery lists it.
type resource struct {
	group, version, plural, kind, singular string
	namespaced                             bool
	shortNames, categories, verbs          []string
	subresources                           []subresource
}

// A subresource and the kind of its objects, if that is another than the resource's.
type subresource struct {
	name, group, version, kind string
	verbs                      []string
}

type groupVersionKind struct {
	Group, Version, Kind string
}

type aggregatedDiscovery struct {
	Items []struct {
		Metadata struct{ Name string }
		Versions []struct {
			Version   string
			Resources []struct {
				Resource         string
				ResponseKind     groupVersionKind
				Scope            string
				SingularResource string
				ShortNames       []string
				Categories       []string
				Verbs            []string
				Subresources     []struct {
					Subresource  string
					ResponseKind groupVersionKind
					Verbs        []string
				}
			}
		}
	}
}

// The core group has a document of the older form.
type resourceList struct {
	Resources []struct {
		Name, SingularName, Group, Version, Kind string
		Namespaced                               bool
		Verbs, ShortNames, Categories            []string
	}
}

// readDiscovery returns the resources of all groups: those of the core group first, the others as published.
func readDiscovery(path string) ([]resource, error) {
	resources, err := readCore(filepath.Join(filepath.Dir(path), "api__v1.json"))
	if err != nil {
		return nil, err
	}
	var document aggregatedDiscovery
	if err := readJSON(path, &document); err != nil {
		return nil, err
	}
	for _, group := range document.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				one := resource{
					group: group.Metadata.Name, version: version.Version, plural: r.Resource, kind: r.ResponseKind.Kind,
					singular: r.SingularResource, namespaced: r.Scope == "Namespaced",
					shortNames: r.ShortNames, categories: r.Categories, verbs: r.Verbs,
				}
				for _, s := range r.Subresources {
					one.subresources = append(one.subresources, subresourceOf(one, s.Subresource, s.ResponseKind, s.Verbs))
				}
				resources = append(resources, one)
			}
		}
	}
	return resources, nil
}

func readCore(path string) ([]resource, error) {
	var document resourceList
	if err := readJSON(path, &document); err != nil {
		return nil, err
	}
	var resources []resource
	for _, r := range document.Resources {
		if plural, name, ok := strings.Cut(r.Name, "/"); ok {
			parent := &resources[len(resources)-1]
			if parent.plural != plural {
				return nil, fmt.Errorf("%s does not follow %s", r.Name, plural)
			}
			kind := groupVersionKind{r.Group, r.Version, r.Kind}
			parent.subresources = append(parent.subresources, subresourceOf(*parent, name, kind, r.Verbs))
			continue
		}
		resources = append(resources, resource{
			version: "v1", plural: r.Name, kind: r.Kind, singular: r.SingularName, namespaced: r.Namespaced,
			shortNames: r.ShortNames, categories: r.Categories, verbs: r.Verbs,
		})
	}
	return resources, nil
}

func subresourceOf(parent resource, name string, kind groupVersionKind, verbs []string) subresource {
	sub := subresource{name: name, verbs: verbs}
	if kind.Kind != parent.kind {
		sub.group, sub.version, sub.kind = kind.Group, kind.Version, kind.Kind
		if sub.version == "" {
			sub.group, sub.version = parent.group, parent.version
		}
	}
	return sub
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// allVerbs are those of a resource that is stored.
const allVerbs = "create delete deletecollection get list patch update watch"

// discoveryTable is discovery.txt: lines as those of kinds.txt, of which they are the beginning.
func discoveryTable(resources []resource) string {
	var out strings.Builder
	for _, r := range resources {
		scope := "cluster"
		if r.namespaced {
			scope = "namespaced"
		}
		fmt.Fprintf(&out, "%s %s %s %s %s", groupVersion(r.group, r.version), r.plural, r.kind, r.singular, scope)
		listed(&out, "short", r.shortNames)
		listed(&out, "categories", r.categories)
		if strings.Join(r.verbs, " ") != allVerbs {
			listed(&out, "verbs", r.verbs)
		}
		out.WriteByte('\n')
		for _, s := range r.subresources {
			fmt.Fprintf(&out, " %s", s.name)
			if s.kind != "" {
				fmt.Fprintf(&out, " %s %s", groupVersion(s.group, s.version), s.kind)
			}
			listed(&out, "verbs", s.verbs)
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func groupVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

func listed(out *strings.Builder, name string, values []string) {
	if len(values) > 0 {
		fmt.Fprintf(out, " %s=%s", name, strings.Join(values, ","))
	}
}
