/** The first job of a newcomer: a small real training with nothing but Python's own library. */
import type { NewJob } from '../../api/types';

const SCRIPT = `# Logistic regression by gradient descent on points that a seed draws: two clouds, one line
# between them. Nothing but the standard library.
import json, math, os, random

random.seed(7)
points = []
for _ in range(2000):
    label = random.random() < 0.5
    shift = 1.5 if label else -1.5
    points.append((random.gauss(shift, 1.2), random.gauss(-shift / 2, 1.2), float(label)))

w1 = w2 = bias = 0.0
steps, rate = 60, 0.5
for step in range(1, steps + 1):
    g1 = g2 = gb = loss = 0.0
    for x, y, label in points:
        p = 1 / (1 + math.exp(-(w1 * x + w2 * y + bias)))
        loss -= math.log(p if label else 1 - p)
        g1 += (p - label) * x
        g2 += (p - label) * y
        gb += p - label
    n = len(points)
    w1, w2, bias = w1 - rate * g1 / n, w2 - rate * g2 / n, bias - rate * gb / n
    print(f"era: metric loss={loss / n:.6f} step={step}", flush=True)

right = sum((w1 * x + w2 * y + bias > 0) == (label > 0.5) for x, y, label in points)
outputs = os.environ.get("ERA_OUTPUTS", "outputs")
os.makedirs(outputs, exist_ok=True)
with open(os.path.join(outputs, "model.json"), "w") as file:
    json.dump({"weights": [w1, w2], "bias": bias, "accuracy": right / len(points)}, file)
print(f"accuracy {right / len(points):.3f}")
`;

export const FIRST_TRAINING: NewJob = {
  name: 'first-training',
  work: { command: ['python3', '-c', SCRIPT] },
  ask: { resources: { cpu: '1', memory: '256Mi' }, duration_s: 60 },
  priority: 0,
};
