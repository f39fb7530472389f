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
	// telling is how much of a line is enough to know it, so that one that was cut is found as well.
	telling = 40
)

// Secrets are values that no log may hold, and in which forms they are looked for, each with what it is.
type Secrets struct{ forms map[string]string }

// NewSecrets are those that are known by their form alone: private keys, and tokens of ServiceAccounts.
func NewSecrets() *Secrets {
	s := &Secrets{forms: map[string]string{}}
	s.add("a private key", "PRIVATE KEY-----")
	s.add("a token", `{"alg":"RS256","kid":"`)
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

// add adds the forms of one line: plain, as JSON has it, and as base64 has it, wherever in what is encoded it stands.
func (s *Secrets) add(what, line string) {
	if line == "" {
		return
	}
	line = line[:min(len(line), telling)]
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
	reader := bufio.NewReaderSize(log, 1<<20)
	for number := 1; ; number++ {
		line, err := reader.ReadString('\n')
		for form, what := range s.forms {
			if strings.Contains(line, form) {
				found = append(found, fmt.Sprintf("line %d holds %s", number, what))
			}
		}
		if err == io.EOF {
			slices.Sort(found)
			return found, nil
		}
		if err != nil {
			return found, fmt.Errorf("cannot read the log: %w", err)
		}
	}
}
