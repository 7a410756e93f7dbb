require "openssl"

def verify_webhook(body, header, secrets, tolerance = 300)
  raise ArgumentError, "a signing secret has a space, a line break or a quote in it" if secrets.any?(/[\s"']/)
  parts = header.b.split(",").map { |part| part.split("=", 2) }
  times = parts.filter_map { |name, value| value if name == "t" }
  return false unless times.size == 1 && times[0].match?(/\A[0-9]{1,12}\z/)
  return false if (Time.now.to_i - times[0].to_i).abs > tolerance
  digests = secrets.reject(&:empty?).map { |secret| OpenSSL::HMAC.hexdigest("SHA256", secret, "#{times[0]}.".b + body.b) }
  given = parts.filter_map { |name, value| value if name == "v1" }
  given.product(digests).map { |value, digest| OpenSSL.secure_compare(value, digest) }.any?
end
