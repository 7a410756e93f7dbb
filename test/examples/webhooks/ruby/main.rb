# Reads cases as lines of JSON, and writes for each whether its delivery is genuine, or that its secret is wrong.
require "json"
require_relative "verify_webhook"

$stdin.each_line do |line|
  delivery = JSON.parse(line)
  puts verify_webhook(delivery["body"].unpack1("m0"), delivery["header"], delivery["secrets"])
rescue ArgumentError
  puts "error"
end
