"""Load test of app.py: requests and rows per second, and latencies.

``python load.py http://127.0.0.1:8000 new.csv`` sends rows of a csv file over connections that stay open, for each
number of connections, rows per request and reasons. Each connection sends its next request when it has an answer.
"""

import argparse
import csv
import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, product
from urllib.parse import urlsplit

import numpy as np

N_BODIES = 200  # different requests


def read_rows(path, kinds):
    """Return the rows of a csv file as the service takes them."""
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: value_of(row[name], kind) for name, kind in kinds.items()} for row in csv.DictReader(file)]


def value_of(text, kind):
    """Return a number, text, or None for a missing value."""
    if not text.strip():
        return None
    return float(text) if kind == "number" else text


def make_bodies(rows, size):
    """Return the bodies of requests, each with the next rows of the table; a single row is no list."""
    starts = [i * size % max(1, len(rows) - size) for i in range(N_BODIES)]
    return [json.dumps(rows[i] if size == 1 else rows[i : i + size]).encode() for i in starts]


def send(address, path, bodies, until):
    """Send requests over one connection; return the seconds that each of them took."""
    connection, taken, ordered = http.client.HTTPConnection(address), [], cycle(bodies)
    while (start := time.perf_counter()) < until:
        connection.request("POST", path, next(ordered), {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}: {content[:500].decode()}")
        taken.append(time.perf_counter() - start)
    connection.close()
    return taken


def measure(address, rows, n_connections, size, n_reasons, seconds):
    """Return requests per second and latencies in milliseconds: median, 95th and 99th percentile."""
    bodies = make_bodies(rows, size)
    path = f"/{'row' if size == 1 else 'rows'}?reasons={n_reasons}"
    send(address, path, bodies, time.perf_counter() + 0.2)  # warm up
    start = time.perf_counter()
    with ThreadPoolExecutor(n_connections) as pool:
        jobs = [
            pool.submit(send, address, path, bodies[i::n_connections], start + seconds) for i in range(n_connections)
        ]
        taken = np.concatenate([job.result() for job in jobs])
    return taken.size / (time.perf_counter() - start), np.percentile(1000 * taken, [50, 95, 99])


def main():
    """Print a line for each number of connections, rows per request and reasons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("table")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--reasons", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line")
    args = parser.parse_args()
    address = urlsplit(args.url).netloc
    connection = http.client.HTTPConnection(address)
    connection.request("GET", "/model")
    rows = read_rows(args.table, json.load(connection.getresponse())["columns"])
    connection.close()
    too_many = [size for size in args.rows if not 1 <= size <= len(rows)]
    if too_many:
        parser.error(f"--rows must be from 1 to {len(rows)}, the rows of the table; got {too_many[0]}")
    print("reasons  connections  rows per request  requests/s    rows/s  median ms  95 % ms  99 % ms")
    for n_reasons, size, n_connections in product(args.reasons, args.rows, args.connections):
        rate, (median, high, highest) = measure(address, rows, n_connections, size, n_reasons, args.seconds)
        print(
            f"{n_reasons:7}  {n_connections:11}  {size:16}  {rate:10.1f}  {rate * size:8.0f}"
            f"  {median:9.1f}  {high:7.1f}  {highest:7.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
