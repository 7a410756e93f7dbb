<?php

// Reads cases as lines of JSON, and writes for each whether its delivery is genuine, or that its secret is wrong.
require __DIR__ . '/verify_webhook.php';

while (($line = fgets(STDIN)) !== false) {
    $delivery = json_decode($line, true);
    try {
        echo json_encode(verify_webhook(base64_decode($delivery['body']), $delivery['header'], $delivery['secrets'])), "\n";
    } catch (InvalidArgumentException) {
        echo "error\n";
    }
}
