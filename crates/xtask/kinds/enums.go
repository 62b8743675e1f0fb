package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// readEnums returns the values of enumerations by schema and property. kube-apiserver publishes them; the published documents are
// without them, so that they are read from the declarations that kube-apiserver makes its documents of.
func readEnums(api string) (map[string]map[string][]string, error) {
	path := filepath.Join(api, "pkg", "generated", "openapi", "zz_generated.openapi.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	packages := map[string]string{}
	for _, one := range file.Imports {
		path, _ := strconv.Unquote(one.Path.Value)
		if one.Name != nil {
			packages[one.Name.Name] = path
		}
	}
	names := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		if pair, ok := node.(*ast.KeyValueExpr); ok {
			if function, of := definitionOf(pair, packages); function != "" {
				names[function] = of
			}
		}
		return true
	})
	all := map[string]map[string][]string{}
	for _, declared := range file.Decls {
		if function, ok := declared.(*ast.FuncDecl); ok && names[function.Name.Name] != "" {
			all[names[function.Name.Name]] = enumsOf(function)
		}
	}
	return all, nil
}

// definitionOf returns the function of a pair `alias.Type{}.OpenAPIModelName(): schema_...(ref)`, and the name of the schema.
func definitionOf(pair *ast.KeyValueExpr, packages map[string]string) (string, string) {
	value, isCall := pair.Value.(*ast.CallExpr)
	key, isKeyCall := pair.Key.(*ast.CallExpr)
	if !isCall || !isKeyCall {
		return "", ""
	}
	function, isName := value.Fun.(*ast.Ident)
	method, isMethod := key.Fun.(*ast.SelectorExpr)
	if !isName || !isMethod {
		return "", ""
	}
	literal, isLiteral := method.X.(*ast.CompositeLit)
	if !isLiteral {
		return "", ""
	}
	of, isSelector := literal.Type.(*ast.SelectorExpr)
	if !isSelector {
		return "", ""
	}
	alias, _ := of.X.(*ast.Ident)
	return function.Name, schemaNameOf(packages[alias.Name], of.Sel.Name)
}

// enumsOf returns the enumerations of the properties of a schema, or of the items of a property.
func enumsOf(function *ast.FuncDecl) map[string][]string {
	all := map[string][]string{}
	ast.Inspect(function, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, isText := pair.Key.(*ast.BasicLit)
		if !isText || key.Kind != token.STRING {
			return true
		}
		name, _ := strconv.Unquote(key.Value)
		ast.Inspect(pair.Value, func(node ast.Node) bool {
			inner, ok := node.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if word, ok := inner.Key.(*ast.Ident); ok && word.Name == "Enum" {
				for _, element := range inner.Value.(*ast.CompositeLit).Elts {
					value, _ := strconv.Unquote(element.(*ast.BasicLit).Value)
					all[name] = append(all[name], value)
				}
			}
			return true
		})
		return false
	})
	return all
}

// enumMark is how the table shows an enumeration: values are separated by commas, and blanks in them are `%20`.
func enumMark(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return " enum:" + strings.ReplaceAll(strings.Join(values, ","), " ", "%20")
}
