"""A small referee: 400 made-up jobs, and when a plain simulation starts and ends each of them.

    python3 referee.py > referee.csv

Every rule is written as it would be explained, without an index, a cache or a clever step, and
shares no code with ERA. Times are whole seconds. The machine has 64 GPUs: 8 nodes of 8, which only
the rules with placement look at.
"""

GPUS, NODE = 64, 8


def made_up(count=400):
    """Jobs in the order of their submission: (submit, duration, estimate, gpus)."""
    seed = 19

    def draw(below):
        nonlocal seed
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        return (seed >> 33) % below

    jobs, now = [], 0
    for _ in range(count):
        # Bursts: two in five come in the same second as the one before.
        now += 0 if draw(5) < 2 else 1 + draw(900)
        gpus = [1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 24, 32][draw(12)]
        duration = [30, 300, 3_000][draw(3)] + draw(2_700)
        # People are right, or careful, or both by chance.
        estimate = [duration, duration + draw(600), 3 * duration, 6_000][draw(4)]
        jobs.append((now, duration, max(estimate, duration), gpus))
    first = jobs[0][0]
    return [(submit - first, *rest) for submit, *rest in jobs]


class Pool:
    """GPUs without places."""

    def __init__(self):
        self.held = {}

    def take(self, job, gpus):
        if sum(self.held.values()) + gpus > GPUS:
            return False
        self.held[job] = gpus
        return True

    def give_back(self, job):
        del self.held[job]


class Nodes:
    """The fullest node that has room, the first among equals; above a node's size, whole nodes that
    are empty, and one more for the rest."""

    def __init__(self):
        self.free, self.held = [NODE] * (GPUS // NODE), {}

    def take(self, job, gpus):
        free, parts = list(self.free), []
        for part in [NODE] * (gpus // NODE) + [gpus % NODE] * (gpus % NODE > 0):
            fit = [node for node in range(len(free)) if free[node] >= part]
            if not fit:
                return False
            node = min(fit, key=lambda node: (free[node], node))
            free[node] -= part
            parts.append((node, part))
        self.free, self.held[job] = free, parts
        return True

    def give_back(self, job):
        for node, part in self.held.pop(job):
            self.free[node] += part


def head_of_line(jobs, machine, key):
    """In each second: all ends, all submissions, then heads of the sorted queue while they fit."""
    start, end, waiting, new = {}, {}, [], list(range(len(jobs)))
    while new or waiting:
        now = min([end[job] for job in machine.held] + [jobs[job][0] for job in new[:1]])
        for job in [job for job in machine.held if end[job] == now]:
            machine.give_back(job)
        while new and jobs[new[0]][0] == now:
            waiting.append(new.pop(0))
        waiting.sort(key=key)
        while waiting and machine.take(waiting[0], jobs[waiting[0]][3]):
            job = waiting.pop(0)
            start[job], end[job] = now, now + jobs[job][1]
    return start, end


def shortest_remaining(jobs):
    """In each second: all ends, all submissions, then GPUs to all unfinished jobs by the time that
    is left to them, whoever has run so far; what does not fit is passed over."""
    start, end, left, order = {}, {}, {}, []
    runs, new, now = [], list(range(len(jobs))), 0
    while new or order:
        coming = [jobs[new[0]][0]] if new else []
        later = min(coming + [now + left[job] for job in runs])
        for job in runs:
            left[job] -= later - now
        now = later
        for job in [job for job in runs if left[job] == 0]:
            end[job] = now
            order.remove(job)
        while new and jobs[new[0]][0] == now:
            left[new[0]] = jobs[new[0]][1]
            order.append(new.pop(0))
        order.sort(key=lambda job: left[job])
        runs, free = [], GPUS
        for job in order:
            if jobs[job][3] <= free:
                free -= jobs[job][3]
                runs.append(job)
                start.setdefault(job, now)
    return start, end


def one_by_one(jobs, decide, estimate):
    """Events one at a time: in a second first submissions, then ends in the order of the starts,
    and a decision after each. GPUs count as free from the estimated end on."""
    start, end, waiting, runs, plan = {}, {}, [], [], {}
    new = list(range(len(jobs)))
    while new or runs:
        now = min([jobs[job][0] for job in new[:1]] + [end[job] for job in runs])
        if new and jobs[new[0]][0] == now:
            event, job = "submitted", new.pop(0)
            waiting.append(job)
        else:
            event, job = "ended", next(job for job in runs if end[job] == now)
            runs.remove(job)
        # What is held: from, until, how much.
        held = [(start[run], start[run] + estimate(run), jobs[run][3]) for run in runs]
        for job in decide(jobs, now, event, list(waiting), held, plan, estimate):
            waiting.remove(job)
            runs.append(job)
            start[job], end[job] = now, now + jobs[job][1]
    return start, end


def free_at(held, time):
    return GPUS - sum(gpus for begins, until, gpus in held if begins <= time < until)


def easy(jobs, now, event, waiting, held, plan, estimate):
    """Heads while they fit. Then whoever fits now and does not delay the next head."""
    started = []

    def start(job):
        held.append((now, now + estimate(job), jobs[job][3]))
        started.append(job)
        waiting.remove(job)

    while waiting and jobs[waiting[0]][3] <= free_at(held, now):
        start(waiting[0])
    for job in waiting[1:]:
        head = jobs[waiting[0]][3]
        shadow = min(until for _, until, _ in held if free_at(held, until) >= head)
        extra = free_at(held, shadow) - head
        if jobs[job][3] <= free_at(held, now):
            if now + estimate(job) <= shadow or jobs[job][3] <= extra:
                start(job)
    return started


def conservative(jobs, now, event, waiting, held, plan, estimate):
    """Everybody has a place in the plan from the submission on, and a better one after an end."""

    def put(job):
        plan.pop(job, None)
        book = held + [(at, at + estimate(j), jobs[j][3]) for j, at in plan.items()]
        for at in sorted({now} | {until for _, until, _ in book if until > now}):
            within = [at] + [begins for begins, _, _ in book if at < begins < at + estimate(job)]
            if all(free_at(book, time) >= jobs[job][3] for time in within):
                plan[job] = at
                return

    for job in waiting[-1:] if event == "submitted" else waiting:
        put(job)
    return [job for job in waiting if plan[job] == now and plan.pop(job) == now]


def main():
    jobs = made_up()
    exact = [job[1] for job in jobs].__getitem__
    stated = [job[2] for job in jobs].__getitem__
    answers = {
        "fifo": head_of_line(jobs, Pool(), lambda job: job),
        "sjf": head_of_line(jobs, Pool(), lambda job: (stated(job), job)),
        "nodes-fifo": head_of_line(jobs, Nodes(), lambda job: job),
        "nodes-sjf": head_of_line(jobs, Nodes(), lambda job: (exact(job), job)),
        "srtf": shortest_remaining(jobs),
        "easy-exact": one_by_one(jobs, easy, exact),
        "easy-stated": one_by_one(jobs, easy, stated),
        "conservative-exact": one_by_one(jobs, conservative, exact),
        "conservative-stated": one_by_one(jobs, conservative, stated),
    }
    columns = [f"{rule} {what}" for rule in answers for what in ("start", "end")]
    print(",".join(["job", "submit_s", "duration_s", "stated_s", "gpus", *columns]))
    for job in range(len(jobs)):
        times = [times[job] for answer in answers.values() for times in answer]
        print(",".join(map(str, [job, *jobs[job], *times])))


if __name__ == "__main__":
    main()
