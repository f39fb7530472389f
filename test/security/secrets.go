// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// shortest is the length below which a line of a secret is not looked for: others may say the same by chance.
	shortest = 16
	// telling is how much of a line is enough to know it, so that one that was cut, or of which a log has a part, is found as well.
	telling = 40
	// stride is how far apart the pieces begin that are looked for in a long line: whatever part of twice that length a log has, holds one.
	stride = 40
	// indexed is how many characters of a form are looked up first, as there are thousands of forms.
	indexed = 8
)

// Secrets are values that no log may hold, and in which forms they are looked for, each with what it is.
type Secrets struct{ forms map[string]string }

// NewSecrets are those that are known by their form alone: private keys, and tokens of ServiceAccounts.
func NewSecrets() *Secrets {
	s := &Secrets{forms: map[string]string{}}
	s.add("a private key", "PRIVATE KEY-----")
	for _, algorithm := range []string{"RS256", "ES256"} { // Of OpenShift, and of API servers that sign with an elliptic curve.
		s.add("a token", `{"alg":"`+algorithm+`","kid":"`)
	}
	return s
}

// Add adds a value; of one with many lines, as certificates have, each is looked for.
func (s *Secrets) Add(what string, value []byte) {
	for line := range strings.Lines(string(value)) {
		if line = strings.TrimSpace(line); len(line) >= shortest && !strings.HasPrefix(line, "-----") {
			s.add(what, line)
		}
	}
}

// AddSecret adds what opens a door in a Secret: the credentials of kubeconfigs and of registries, and all else as it is.
func (s *Secrets) AddSecret(secret *corev1.Secret) error {
	for key, value := range secret.Data {
		what := fmt.Sprintf("%s of Secret %s/%s", key, secret.Namespace, secret.Name)
		config, err := clientcmd.Load(value)
		switch {
		case key == corev1.DockerConfigJsonKey:
			if err := s.addRegistries(what, value); err != nil {
				return err
			}
		case key == corev1.TLSCertKey || key == corev1.ServiceAccountRootCAKey: // Servers show their certificates to everybody.
		case err == nil && len(config.AuthInfos) > 0:
			s.addKubeconfig(what, config)
		default:
			s.Add(what, value)
		}
	}
	return nil
}

func (s *Secrets) addKubeconfig(what string, config *clientcmdapi.Config) {
	for _, user := range config.AuthInfos {
		s.Add("the token in "+what, []byte(user.Token))
		s.Add("the password in "+what, []byte(user.Password))
		s.Add("the certificate in "+what, user.ClientCertificateData)
		s.Add("the private key in "+what, user.ClientKeyData)
	}
}

func (s *Secrets) addRegistries(what string, data []byte) error {
	var registries struct {
		Auths map[string]struct{ Auth, Password string }
	}
	if err := json.Unmarshal(data, &registries); err != nil {
		return fmt.Errorf("cannot read %s", what)
	}
	for name, registry := range registries.Auths {
		s.add("the credential of "+name+" in "+what, registry.Auth)
		decoded, _ := base64.StdEncoding.DecodeString(registry.Auth)
		s.add("the credential of "+name+" in "+what, string(decoded))
		s.add("the password of "+name+" in "+what, registry.Password)
	}
	return nil
}

// add adds the forms of one line, piece by piece: many secrets of one line begin alike, as an ignition does.
func (s *Secrets) add(what, line string) {
	for len(line) > telling {
		s.addPiece(what, line[:telling])
		line = line[min(stride, len(line)-telling):] // The last piece ends where the line does.
	}
	s.addPiece(what, line)
}

// addPiece adds the forms of a piece: plain, as JSON has it, and as base64 has it, wherever in what is encoded it stands.
func (s *Secrets) addPiece(what, line string) {
	if line == "" {
		return
	}
	if escaped, err := json.Marshal(line); err == nil {
		s.forms[strings.Trim(string(escaped), `"`)] = what + " as JSON"
	}
	s.forms[line] = what // Most lines are the same in JSON.
	for alignment := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", alignment) + line))
			// What the first and the last character say depends on the bytes beside the line too.
			first, last := (alignment*8+5)/6, (alignment+len(line))*8/6
			s.forms[encoded[first:last]] = what + " as base64"
		}
	}
}

// Find reads a log and returns what it holds of the secrets, with the numbers of the lines, and none of them.
func (s *Secrets) Find(log io.Reader) ([]string, error) {
	var found []string
	index, reader := s.index(), bufio.NewReaderSize(log, 1<<20)
	for number := 1; ; number++ {
		line, err := reader.ReadString('\n')
		for _, form := range formsIn(line, index) {
			found = append(found, fmt.Sprintf("line %d holds %s", number, s.forms[form]))
		}
		if err == io.EOF {
			slices.Sort(found)
			return slices.Compact(found), nil
		}
		if err != nil {
			return found, fmt.Errorf("cannot read the log: %w", err)
		}
	}
}

// index are the forms by the characters that they begin with. A form is a piece of a secret, and what is shorter than these is none.
func (s *Secrets) index() map[string][]string {
	index := map[string][]string{}
	for form := range s.forms {
		if len(form) >= indexed {
			index[form[:indexed]] = append(index[form[:indexed]], form)
		}
	}
	return index
}

// formsIn are the forms that a line holds.
func formsIn(line string, index map[string][]string) []string {
	var found []string
	for i := range len(line) {
		for _, form := range index[line[i:min(i+indexed, len(line))]] {
			if strings.HasPrefix(line[i:], form) {
				found = append(found, form)
			}
		}
	}
	return found
}
