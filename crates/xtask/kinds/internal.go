package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Messages of kube-apiserver print values of its internal types, whose fields have Go's names and another order than the
// published ones. internalTable writes the structs that such messages print, and those within them.

// internalRoots are the structs that messages print.
var internalRoots = []string{
	"core.PodSpec", "core.PodTemplateSpec", "core.PersistentVolumeClaimSpec", "core.PersistentVolumeSpec",
	"core.Taint", "core.PodResourceClaim", "core.PersistentVolumeClaim", "core.HostIP", "policy.PodDisruptionBudgetSpec", "core.NodeAddress",
	"autoscaling.HorizontalPodAutoscalerBehavior", "apps.DeploymentStrategy", "apps.DaemonSetUpdateStrategy", "apps.StatefulSetUpdateStrategy", "batch.PodFailurePolicy", "batch.SuccessPolicy", "batch.JobSpec",
	"resource.ResourceClaimSpec", "resource.ResourceClaimTemplateSpec", "resource.ResourceSliceSpec",
	"resource.AllocatedDeviceStatus", "resource.AllocationResult", "storage.VolumeAttachmentSpec", "storage.CSIDriverSpec", "storage.CSINodeDriver", "networking.ParentReference", "certificates.PodCertificateRequestSpec",
	"flowcontrol.FlowSchemaSpec", "flowcontrol.PriorityLevelConfigurationSpec",
	"scheduling.CompositePodGroupTemplate", "lifecycle.TargetResponder", "lifecycle.ResponderStatus",
}

type internalTypes struct {
	specs map[string]*ast.TypeSpec
	done  map[string]string
}

// readInternal parses the internal types of the groups of internalRoots.
func readInternal(kubernetes string) (*internalTypes, error) {
	types := &internalTypes{map[string]*ast.TypeSpec{}, map[string]string{}}
	for _, root := range internalRoots {
		group := strings.Split(root, ".")[0]
		path := filepath.Join(kubernetes, "pkg", "apis", group, "types.go")
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					types.specs[group+"."+named.Name.Name] = named
				}
			}
		}
	}
	return types, nil
}

func (t *internalTypes) table() string {
	for _, root := range internalRoots {
		t.add(root)
	}
	names := make([]string, 0, len(t.done))
	for name := range t.done {
		names = append(names, name)
	}
	sort.Strings(names)
	out := "# The internal types that messages print, by `cargo xtask kinds`; the format is described in internal.rs.\n"
	for _, name := range names {
		out += name + "\n" + t.done[name]
	}
	return out
}

// add writes a struct, and those within it.
func (t *internalTypes) add(name string) {
	if _, known := t.done[name]; known {
		return
	}
	structure, ok := t.specs[name].Type.(*ast.StructType)
	if !ok {
		return
	}
	t.done[name] = ""
	group := strings.Split(name, ".")[0]
	lines := ""
	for _, field := range structure.Fields.List {
		kind := t.kind(group, field.Type)
		if len(field.Names) == 0 {
			lines += " ^ " + kind + "\n"
		}
		json := ""
		if field.Tag != nil {
			tag, _ := strconv.Unquote(field.Tag.Value)
			if i := strings.Index(tag, `json:"`); i >= 0 {
				json = strings.SplitN(strings.SplitN(tag[i+6:], `"`, 2)[0], ",", 2)[0]
			}
		}
		for _, identifier := range field.Names {
			shown := identifier.Name
			if json != "" {
				shown = json
			}
			lines += " " + shown + " " + kind + "\n"
		}
	}
	t.done[name] = lines
}

// kind is the type of a field: string, bool, int, any, raw, or a struct, with `[]`, `{}` or `*` in front.
func (t *internalTypes) kind(group string, expression ast.Expr) string {
	switch node := expression.(type) {
	case *ast.StarExpr:
		return "*" + t.kind(group, node.X)
	case *ast.ArrayType:
		if item, ok := node.Elt.(*ast.Ident); ok && item.Name == "byte" {
			return "raw"
		}
		return "[]" + t.kind(group, node.Elt)
	case *ast.MapType:
		return "{}" + t.kind(group, node.Value)
	case *ast.Ident:
		switch node.Name {
		case "string", "bool":
			return node.Name
		case "int", "int32", "int64", "float64":
			return "int"
		}
		named := group + "." + node.Name
		spec, known := t.specs[named]
		if !known {
			fail(fmt.Errorf("no internal type %s", named))
		}
		if _, ok := spec.Type.(*ast.StructType); ok {
			t.add(named)
			return named
		}
		return t.kind(group, spec.Type)
	case *ast.SelectorExpr:
		return t.selected(node)
	}
	return "any"
}

func (t *internalTypes) selected(node *ast.SelectorExpr) string {
	name := fmt.Sprintf("%s.%s", node.X, node.Sel.Name)
	switch name {
	case "metav1.ObjectMeta", "metav1.TypeMeta":
		return "metadata"
	case "metav1.LabelSelector":
		return "selector"
	case "types.UID", "types.NodeName":
		return "string"
	case "metav1.Time":
		return "time"
	case "resource.Quantity":
		return "quantity"
	case "runtime.RawExtension":
		return "raw"
	}
	named := strings.Replace(name, "api.", "core.", 1)
	if _, known := t.specs[named]; known {
		return t.kind(strings.Split(named, ".")[0], ast.NewIdent(node.Sel.Name))
	}
	return "any"
}
