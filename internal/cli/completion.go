package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints the completion script of a shell. The script calls this program for the
// words: see complete.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// completing is the first argument of a call by the script. The words of the command line follow,
// the incomplete one last.
const completing = "__complete"

var scripts = map[string]string{
	"bash": `# tenantcontent: source <(tenantcontent completion bash)
_tenantcontent() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tenantcontent tenantcontent`,
	"zsh": `#compdef tenantcontent
# tenantcontent: source <(tenantcontent completion zsh), after compinit
_tenantcontent() {
	local -a found
	found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "${found[*]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _tenantcontent tenantcontent`,
	"fish": `# tenantcontent: tenantcontent completion fish | source
function __tenantcontent_complete
	set -l words (commandline -opc)
	set -l last (commandline -ct)
	$words[1] __complete $words[2..-1] "$last" 2>/dev/null
end
complete -c tenantcontent -a '(__tenantcontent_complete)'`,
}

func (c *completionCommand) Run(t terminal) error { return say(t, "%s", scripts[c.Shell]) }

// complete prints the completions of the last word, one on each line. It prints none for arguments
// such as names of files.
func complete(model *kong.Application, words []string, out io.Writer) {
	node, value := model.Node, (*kong.Flag)(nil)
	position, last := 0, ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	if last == "=" { // bash splits --flag=
		last = ""
	}
	for _, word := range words {
		switch child := childOf(node, word); {
		case word == "=":
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-"):
			if f := flagOf(node, word); f != nil && !f.IsBool() {
				value = f
			}
		case word == "help" && node.Type == kong.ApplicationNode:
		case child != nil:
			node = child
		default:
			position++
		}
	}
	for _, word := range candidates(node, value, position, last) {
		if strings.HasPrefix(word, last) {
			_, _ = fmt.Fprintln(out, word)
		}
	}
}

func candidates(node *kong.Node, value *kong.Flag, position int, last string) (words []string) {
	name, _, given := strings.Cut(last, "=")
	switch {
	case value != nil:
		return value.EnumSlice()
	case strings.HasPrefix(last, "-") && given:
		if f := flagOf(node, name); f != nil {
			for _, v := range f.EnumSlice() {
				words = append(words, name+"="+v)
			}
		}
		return words
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				words = append(words, "--"+f.Name)
			}
		}
		return words
	}
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	if position < len(node.Positional) {
		words = append(words, node.Positional[position].EnumSlice()...)
	}
	return words
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if "--"+f.Name == word {
				return f
			}
		}
	}
	return nil
}
