<?php

function verify_webhook(string $body, string $header, array $secrets, int $tolerance = 300): bool
{
    if (preg_grep('/[\s"\']/', $secrets)) throw new InvalidArgumentException('a signing secret has a space, a line break or a quote in it');
    $parts = array_map(fn (string $part): array => explode('=', $part, 2) + ['', ''], explode(',', $header));
    $times = array_values(array_filter($parts, fn (array $part): bool => $part[0] === 't'));
    if (count($times) !== 1 || !preg_match('/\A[0-9]{1,12}\z/', $times[0][1])) return false;
    $timestamp = $times[0][1];
    $genuine = false;
    foreach (array_filter($secrets, fn (string $secret): bool => $secret !== '') as $secret) {
        $digest = hash_hmac('sha256', "$timestamp.$body", $secret);
        foreach ($parts as [$name, $value]) $genuine = ($name === 'v1' && hash_equals($digest, $value)) || $genuine;
    }
    return $genuine && abs(time() - (int) $timestamp) <= $tolerance;
}
