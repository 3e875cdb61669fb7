package subagent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AgentsDir is where kinds are described, below a project or a home directory.
const AgentsDir = "agents"

// LoadKinds reads the Markdown files of directories: front matter between lines
// of three dashes with name, description, tools and model, and the persona
// below. A kind of an earlier directory hides one of the same name in a later.
// Directories need not exist. The error tells every problem with its file and
// line; the kinds that have none are returned all the same.
func LoadKinds(dirs ...string) ([]Kind, error) {
	var kinds []Kind
	var errs []error
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.md"))
		if err != nil {
			errs = append(errs, fmt.Errorf("subagent: %s: %w", dir, err))
		}
		slices.Sort(files)
		here := map[string]string{}
		for _, file := range files {
			k, err := loadKind(file)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if other := here[k.Name]; other != "" {
				errs = append(errs, fmt.Errorf("subagent: %s: the name %q is taken by %s", file, k.Name, other))
				continue
			}
			here[k.Name] = file
			if !slices.ContainsFunc(kinds, func(o Kind) bool { return o.Name == k.Name }) {
				kinds = append(kinds, k)
			}
		}
	}
	return kinds, errors.Join(errs...)
}

func loadKind(file string) (Kind, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Kind{}, fmt.Errorf("subagent: %w", err)
	}
	k, err := ParseKind(file, string(raw))
	if err == nil && k.Name == "" {
		k.Name = strings.TrimSuffix(filepath.Base(file), ".md")
		err = checkName(file, 1, k.Name)
	}
	return k, err
}

// ParseKind reads one description. The file is what problems and the kind
// itself name; a kind without a name is named by the caller.
func ParseKind(file, content string) (Kind, error) {
	k := Kind{File: file}
	lines := strings.Split(strings.ReplaceAll(content, "\r\n", "\n"), "\n")
	if strings.TrimSpace(lines[0]) != "---" {
		return k, fmt.Errorf("subagent: %s:1: the file must begin with a line of three dashes", file)
	}
	end := 1
	for ; end < len(lines) && strings.TrimSpace(lines[end]) != "---"; end++ {
	}
	if end == len(lines) {
		return k, fmt.Errorf("subagent: %s:%d: the front matter has no end; close it with a line of three dashes", file, len(lines))
	}
	var errs []error
	seen := map[string]bool{}
	for i := 1; i < end; i++ {
		key, value, problem := field(lines[i])
		if key == "tools" && value == "" && problem == "" {
			var list []string
			for ; i+1 < end && strings.HasPrefix(strings.TrimSpace(lines[i+1]), "- "); i++ {
				list = append(list, strings.TrimSpace(lines[i+1])[2:])
			}
			value = strings.Join(list, ",")
		}
		if key != "" && seen[key] {
			problem = fmt.Sprintf("%q is there twice", key)
		}
		seen[key] = true
		if problem == "" && key != "" {
			problem = k.set(key, value)
		}
		if problem != "" {
			errs = append(errs, fmt.Errorf("subagent: %s:%d: %s", file, i+1, problem))
		}
	}
	if k.Name != "" {
		errs = append(errs, checkName(file, 1, k.Name))
	}
	if k.Description == "" {
		errs = append(errs, fmt.Errorf("subagent: %s:%d: a description is missing; models choose by it", file, end+1))
	}
	k.Persona = strings.TrimSpace(strings.Join(lines[end+1:], "\n"))
	return k, errors.Join(errs...)
}

func checkName(file string, line int, name string) error {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return fmt.Errorf("subagent: %s:%d: the name %q may have a-z, 0-9, - and _ only", file, line, name)
		}
	}
	return nil
}

// field reads one line of front matter; a blank line or a comment has no key.
func field(line string) (key, value, problem string) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return "", "", ""
	}
	key, value, found := strings.Cut(line, ":")
	if !found {
		return "", "", fmt.Sprintf("%q is no `name: value`", line)
	}
	value = strings.TrimSpace(value)
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return strings.TrimSpace(key), value, ""
}

// set sets a field, or says why it cannot.
func (k *Kind) set(key, value string) (problem string) {
	switch key {
	case "name":
		k.Name = value
	case "description":
		k.Description = value
	case "model":
		// provider/model names the route, a lone name the model.
		if provider, model, both := strings.Cut(value, "/"); both {
			k.Provider, k.Model = provider, model
		} else {
			k.Model = value
		}
	case "tools":
		k.Tools = []string{}
		for name := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
			if name = strings.Trim(strings.TrimSpace(name), `"'`); name != "" {
				k.Tools = append(k.Tools, name)
			}
		}
	default:
		return fmt.Sprintf("there is no field %q; use name, description, tools or model", key)
	}
	return ""
}
