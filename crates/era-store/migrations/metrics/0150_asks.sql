-- Quotes that were asked, taken or not: demand that a forecast wants to know of.
CREATE TABLE asks (
    at BIGINT NOT NULL,
    account BIGINT NOT NULL,
    bid TEXT NOT NULL,
    price BIGINT
);
CREATE INDEX asks_at ON asks (at);
