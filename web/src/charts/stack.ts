/** Numbers one upon another: the n-th line becomes the sum of the first n. */
export function stacked(lines: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const sums: number[] = [];
  return lines.map((values) =>
    values.map((value, index) => {
      const sum = (sums[index] ?? 0) + (value ?? 0);
      sums[index] = sum;
      return sum;
    }),
  );
}
