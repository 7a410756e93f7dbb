# Reads cases as lines of JSON, and writes for each whether the provider's library takes its delivery for genuine.
require "json"
require "stripe"

$stdin.each_line do |line|
  delivery = JSON.parse(line)
  body, header, secret = delivery["body"].unpack1("m0"), delivery["header"], delivery["secrets"][0]
  begin
    puts Stripe::Webhook::Signature.verify_header(body, header, secret, tolerance: 300)
  rescue Stripe::SignatureVerificationError
    puts false
  end
end
