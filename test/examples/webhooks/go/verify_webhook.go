package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

func VerifyWebhook(body []byte, header string, secrets []string, tolerance int64) (bool, error) {
	for _, secret := range secrets {
		if strings.ContainsAny(secret, " \t\r\n\"'") {
			return false, errors.New("a signing secret has a space, a line break or a quote in it")
		}
	}
	parts := strings.Split(header, ",")
	timestamp, times := "", 0
	for _, part := range parts {
		if value, found := strings.CutPrefix(part, "t="); found {
			timestamp, times = value, times+1
		}
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if off := time.Now().Unix() - int64(seconds); err != nil || times != 1 || off > tolerance || off < -tolerance {
		return false, nil
	}
	genuine := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(append([]byte(timestamp+"."), body...))
		digest := []byte(hex.EncodeToString(mac.Sum(nil)))
		for _, part := range parts {
			if value, found := strings.CutPrefix(part, "v1="); found && secret != "" && hmac.Equal([]byte(value), digest) {
				genuine = true
			}
		}
	}
	return genuine, nil
}
