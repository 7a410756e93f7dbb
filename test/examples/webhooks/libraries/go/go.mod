module verify

go 1.21

require github.com/stripe/stripe-go/v84 v84.4.1
