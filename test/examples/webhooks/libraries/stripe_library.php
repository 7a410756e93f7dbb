<?php

// Reads cases as lines of JSON, and writes for each whether the provider's library takes its delivery for genuine.
// The argument is Composer's autoloader.
require $argv[1];

while (($line = fgets(STDIN)) !== false) {
    $delivery = json_decode($line, true);
    [$body, $header, $secret] = [base64_decode($delivery['body']), $delivery['header'], $delivery['secrets'][0]];
    try {
        echo json_encode(\Stripe\WebhookSignature::verifyHeader($body, $header, $secret, 300)), "\n";
    } catch (\Stripe\Exception\SignatureVerificationException) {
        echo "false\n";
    }
}
