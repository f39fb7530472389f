// SPDX-License-Identifier: Apache-2.0

package localcontrolplane

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// signatureHalf is the length of each of the two numbers of an ES256 signature.
const signatureHalf = 32

// Shorten returns a token of a ServiceAccount that ends earlier, signed as the server signs its own. No kube-apiserver issues a token for
// less than ten minutes, which is too long to wait for its end.
func (s *APIServer) Shorten(token string, expires time.Time) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 { // Header, claims and signature.
		return "", errors.New("the token is no JSON web token")
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("cannot decode the claims of a token: %w", err)
	}
	claims := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &claims); err != nil {
		return "", fmt.Errorf("cannot read the claims of a token: %w", err)
	}
	claims["exp"] = fmt.Appendf(nil, "%d", expires.Unix())
	if data, err = json.Marshal(claims); err != nil {
		return "", fmt.Errorf("cannot write the claims of a token: %w", err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(data)
	signature, err := s.signToken(signed)
	return signed + "." + signature, err
}

// signToken signs as the header of the server's tokens says: with the one key it has, by ES256.
func (s *APIServer) signToken(text string) (string, error) {
	file, err := os.ReadFile(s.signingKeyFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the key of tokens of %s: %w", s.Name(), err)
	}
	block, _ := pem.Decode(file)
	if block == nil {
		return "", fmt.Errorf("the key of tokens of %s is not PEM", s.Name())
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("cannot read the key of tokens of %s: %w", s.Name(), err)
	}
	hash := sha256.Sum256([]byte(text))
	r, t, err := ecdsa.Sign(rand.Reader, key, hash[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign a token of %s: %w", s.Name(), err)
	}
	signature := append(r.FillBytes(make([]byte, signatureHalf)), t.FillBytes(make([]byte, signatureHalf))...)
	return base64.RawURLEncoding.EncodeToString(signature), nil
}
