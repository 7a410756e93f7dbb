CREATE TABLE orders (
  id text PRIMARY KEY,
  session_id text NOT NULL UNIQUE,           -- the checkout session that sells it
  amount bigint NOT NULL,                    -- in the smallest unit, as in the event
  currency text NOT NULL,                    -- in lower case, as in the event
  state text NOT NULL DEFAULT 'open',        -- open, paid, or mismatch: for a person to look at
  payment_id text UNIQUE                     -- one payment pays one order
);
CREATE TABLE received_events (id text PRIMARY KEY, received_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE payments (                      -- filled from two events, whichever comes first
  id text PRIMARY KEY,
  session_id text,                           -- from checkout.completed
  amount bigint,                             -- from payment.succeeded: the money was received
  currency text
);
CREATE TABLE shipments (order_id text PRIMARY KEY REFERENCES orders);
