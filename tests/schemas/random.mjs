// Random numbers that a seed decides.

export class Random {
  constructor(seed) { this.state = seed >>> 0; }

  // From 0 up to, but not including, 1. (mulberry32)
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let x = this.state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  }
  chance(probability) { return this.next() < probability; }
  // From `least` to `most`, both included.
  integer(least, most) { return least + Math.floor(this.next() * (most - least + 1)); }
  pick(list) { return list[this.integer(0, list.length - 1)]; }
  some(list, probability) { return list.filter(() => this.chance(probability)); }
  shuffle(list) {
    const result = [...list];
    for (let i = result.length - 1; i > 0; --i) {
      const j = this.integer(0, i);
      [result[i], result[j]] = [result[j], result[i]];
    }
    return result;
  }
}
