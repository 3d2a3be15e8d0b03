// Random schemas, and documents that are valid by them or nearly so.
import { Random } from './random.mjs';

const NAMES = ['a', 'b', 'ab', 'abc', 'name', 'id', 'tags', 'größe', 'with "quotes"', 'x\\y', '', 'a\nb'];
const WORDS = ['', 'a', 'ab', 'red', 'green', 'grün', '日本', '😀', 'say "hi"', 'back\\slash', 'tab\there', 'a/b', '\u0001', '\u007f',
  'line\nbreak', 'much longer than the others are, with spaces'];
// A pattern, and texts that match.
const PATTERNS = [
  ['^[a-z]+$', ['a', 'hello', 'zzzzzzzz']],
  ['^[A-Z]{2}-\\d{3,5}$', ['AB-123', 'ZZ-00000']],
  ['b', ['b', 'abc', 'bbb', 'x b']],
  ['^(foo|bar)?$', ['', 'foo', 'bar']],
  ['^\\w+(\\.\\w+)*$', ['a', 'a.b', 'a_1.b.c']],
  ['^x|y$', ['x', 'xabc', 'aby', 'y']],
  ['^[^"\\\\]*$', ['', 'plain', 'ü😀']],
  ['^\\S+\\s\\S+$', ['a b', 'hello\tworld', 'a\u00a0b']],
  ['^.{3}$', ['abc', 'a😀b', 'öäü']],
  ['\\u0041|\\x42', ['A', 'xB']],
  ['^(?:[01]\\d|2[0-3]):[0-5]\\d$', ['00:00', '23:59']],
  ['^[\\u{1F600}-\\u{1F64F}]+$', ['😀', '😀😃']],
];
const FORMATS = {
  date: ['2024-02-29', '1999-12-31'],
  time: ['10:20:30Z', '23:59:59.5+01:00'],
  'date-time': ['2024-02-29T10:20:30Z', '2021-01-01T00:00:00.123456-05:30'],
  duration: ['P1D', 'PT5M', 'P1Y2M3DT4H5M6S', 'P2W'],
  email: ['a@b.co', 'first.last+tag@example.org'],
  hostname: ['localhost', 'www.example.com', 'a-b.c1'],
  ipv4: ['0.0.0.0', '192.168.1.255'],
  ipv6: ['::', '::1', '2001:db8::ff00:42:8329', '1:2:3:4:5:6:7:8', '::ffff:10.0.0.1', '1::2:10.0.0.1'],
  uri: ['http://example.com', 'https://u@h:80/p/a?q=1#f', 'mailto:a@b.c', 'urn:isbn:1', 'http://[::1]/'],
  uuid: ['123e4567-e89b-12d3-a456-426614174000', 'ABCDEF00-0000-0000-0000-00000000abcd'],
  byte: ['', 'YQ==', 'YWI=', 'YWJj'],
  'json-pointer': ['', '/a/0', '/~0~1'],
};
const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];
const DIVISORS = [1, 2, 3, 5, 7, 10, 25, 60, 100, 0.5, 0.25, 1.5, 0.125];

const typeOf = (value) => value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;

export class Generator {
  constructor(seed) { this.random = new Random(seed); }

  // { schema, documents: [{ value, usual }] }; the usual ones have texts of formats as they are
  // written everywhere.
  case() {
    this.definitions = {};
    this.names = this.random.chance(0.4) ? ['node', 'leaf'] : [];
    const schema = this.schema(0);
    // What a definition contains may be the definitions again, but only inside of objects and lists.
    this.defining = true;
    for (const name of this.names) {
      this.definitions[name] = name === 'leaf' ? this.ofType(this.random.pick(TYPES.slice(0, 5)), 3)
        : this.ofType(this.random.pick(['object', 'array']), 2);
    }
    this.defining = false;
    if (this.names.length) schema.$defs = this.definitions;
    return { schema, documents: this.documents(schema) };
  }

  documents(schema) {
    const documents = [];
    for (let i = 0; i < 6; ++i) {
      const value = this.value(schema, 0);
      documents.push({ value, usual: true });
      for (let j = 0; j < 3; ++j) documents.push({ value: this.mutated(value), usual: false });
    }
    for (let i = 0; i < 3; ++i) documents.push({ value: this.anything(0), usual: true });
    return documents;
  }

  schema(depth) {
    const random = this.random;
    const kind = random.next();
    if (kind < 0.04) return {};
    if (kind < 0.12 && this.names.length && depth > 0) return this.reference();
    if (kind < 0.20) return { enum: Array.from({ length: random.integer(1, 6) }, () => this.anything(2)) };
    if (kind < 0.24) return { const: this.anything(1) };
    if (kind < 0.34 && depth < 3) return { anyOf: Array.from({ length: random.integer(1, 3) }, () => this.schema(depth + 1)) };
    if (kind < 0.40 && depth < 3) return this.oneOf(depth);
    if (kind < 0.48 && depth < 3) return this.allOf(depth);
    if (kind < 0.54) return this.ofTypes(depth);
    return this.ofType(random.pick(depth < 3 ? [...TYPES, 'object', 'object', 'array', 'string', 'number'] : TYPES.slice(0, 5)), depth);
  }

  reference() { return { $ref: '#/$defs/' + this.random.pick(this.names) }; }

  ofTypes(depth) {
    const types = this.random.shuffle(TYPES).slice(0, 2);
    const schema = {};
    for (const type of types) Object.assign(schema, this.ofType(type, depth + 1));
    schema.type = types;
    return schema;
  }

  oneOf(depth) {
    if (this.random.chance(0.5)) {
      const types = this.random.shuffle(['null', 'boolean', 'number', 'string', 'array', 'object']).slice(0, this.random.integer(1, 3));
      return { oneOf: types.map((type) => this.ofType(type, depth + 1)) };
    }
    return {
      oneOf: ['x', 'y', 'z'].slice(0, this.random.integer(1, 3)).map((kind) => {
        const object = this.ofType('object', depth + 1);
        object.properties = { ...object.properties, kind: { const: kind } };
        object.required = [...new Set([...object.required ?? [], 'kind'])];
        return object;
      }),
    };
  }

  allOf(depth) {
    const type = this.random.pick(['object', 'object', 'array', 'string', 'number', 'integer']);
    const schema = { allOf: Array.from({ length: this.random.integer(1, 3) }, () => this.ofType(type, depth + 1)) };
    if (this.random.chance(0.3)) schema.anyOf = [this.ofType(type, depth + 1), this.ofType(type, depth + 1)];
    return this.random.chance(0.3) ? Object.assign(this.ofType(type, depth + 1), schema) : schema;
  }

  ofType(type, depth) {
    const schema = { type };
    if (this.random.chance(0.05)) schema.nullable = true;
    if (this.random.chance(0.05)) schema.title = 'A title';
    if (type === 'integer' || type === 'number') this.addNumber(schema);
    if (type === 'string') this.addString(schema);
    if (type === 'array') this.addArray(schema, depth);
    if (type === 'object') this.addObject(schema, depth);
    return schema;
  }

  number() {
    const random = this.random;
    switch (random.integer(0, 6)) {
      case 0: return random.integer(-3, 3);
      case 1: return random.integer(-1000, 1000);
      case 2: return random.integer(-1e9, 1e9);
      case 3: return random.integer(-400, 400) / 4;
      case 4: return random.integer(-9999, 9999) / 100;
      case 5: return (random.next() - 0.5) * 10 ** random.integer(-12, 25);
      default: return random.pick([0, 1, -1, 0.1, 1e-7, 1e21, 123456789012345680000, 5e-324, 1.7976931348623157e308, -2.5, 100]);
    }
  }

  addNumber(schema) {
    const random = this.random;
    if (random.chance(0.15)) schema.format = random.pick(['int32', 'int64', 'double']);
    if (random.chance(0.2)) schema.multipleOf = random.pick(DIVISORS);
    const [a, b] = [this.number(), this.number()].sort((x, y) => x - y);
    if (random.chance(0.35)) schema[random.pick(['minimum', 'exclusiveMinimum'])] = a;
    if (random.chance(0.35)) schema[random.pick(['maximum', 'exclusiveMaximum'])] = b;
  }

  addString(schema) {
    const random = this.random;
    const kind = random.next();
    if (kind < 0.3) schema.pattern = random.pick(PATTERNS)[0];
    else if (kind < 0.5) schema.format = random.pick(Object.keys(FORMATS));
    if (random.chance(0.2)) schema.minLength = random.integer(0, 5);
    if (random.chance(0.25)) schema.maxLength = random.integer(schema.minLength ?? 0, 12);
  }

  addArray(schema, depth) {
    const random = this.random;
    if (random.chance(0.2)) schema.prefixItems = Array.from({ length: random.integer(1, 3) }, () => this.schema(depth + 2));
    if (random.chance(0.8)) schema.items = random.chance(0.1) ? random.chance(0.5) : this.schema(depth + 1);
    if (random.chance(0.3)) schema.minItems = random.integer(0, 3);
    if (random.chance(0.3)) schema.maxItems = random.integer(schema.minItems ?? 0, 5);
  }

  addObject(schema, depth) {
    const random = this.random;
    const names = random.some(NAMES, 0.25);
    if (names.length || random.chance(0.5)) {
      schema.properties = {};
      for (const name of names) schema.properties[name] = random.chance(0.03) ? random.chance(0.5) : this.schema(depth + 1);
    }
    // ajv takes an empty name for one that is there.
    if (random.chance(0.6)) schema.required = random.some(names.filter((name) => name), 0.5);
    if (random.chance(0.05)) schema.required = [...schema.required ?? [], 'extra'];
    if (random.chance(0.5)) schema.additionalProperties = random.chance(0.6) ? false : this.schema(depth + 1);
    if (random.chance(0.1)) schema.minProperties = random.integer(0, schema.additionalProperties === false ? 3 : 1);
    if (random.chance(0.1)) schema.maxProperties = random.integer(schema.minProperties ?? 0, 5);
    if (random.chance(0.05)) schema.propertyNames = random.chance(0.5) ? { type: 'string' } : { enum: random.some(NAMES, 0.6) };
  }

  anything(depth) {
    const random = this.random;
    switch (random.integer(0, depth < 3 ? 7 : 5)) {
      case 0: return null;
      case 1: return random.chance(0.5);
      case 2: case 3: return this.number();
      case 4: case 5: return random.pick(WORDS);
      case 6: return Array.from({ length: random.integer(0, 3) }, () => this.anything(depth + 1));
      default: return Object.fromEntries(random.some(NAMES, 0.2).map((name) => [name, this.anything(depth + 1)]));
    }
  }

  // A value that is valid, unless several constraints get in each other's way.
  value(schema, depth) {
    const random = this.random;
    if (typeof schema === 'boolean' || depth > 12) return this.anything(3);
    if (schema.$ref) return this.value(this.definitions[schema.$ref.slice(8)], depth + 1);
    if (schema.enum) return random.pick(schema.enum);
    if ('const' in schema) return schema.const;
    for (const keyword of ['anyOf', 'oneOf'])
      if (schema[keyword] && !schema.allOf) return this.value(random.pick(schema[keyword]), depth + 1);
    if (schema.allOf) return this.value(this.merged([schema, ...schema.allOf, ...schema.anyOf ? [random.pick(schema.anyOf)] : []]), depth + 1);
    const types = [schema.type ?? TYPES].flat();
    if (schema.nullable && random.chance(0.2)) return null;
    return this.valueOfType(random.pick(types), schema, depth);
  }

  // Good enough for schemas of one type.
  merged(schemas) {
    const merged = {};
    for (const { allOf, anyOf, ...schema } of schemas) {
      const properties = { ...merged.properties, ...schema.properties };
      const required = [...merged.required ?? [], ...schema.required ?? []];
      Object.assign(merged, schema, { properties, required });
    }
    return merged;
  }

  valueOfType(type, schema, depth) {
    const random = this.random;
    switch (type) {
      case 'null': return null;
      case 'boolean': return random.chance(0.5);
      case 'integer': return Math.trunc(this.valueOfNumber(schema));
      case 'number': return this.valueOfNumber(schema);
      case 'string': return this.valueOfString(schema);
      case 'array': return this.valueOfArray(schema, depth);
      default: return this.valueOfObject(schema, depth);
    }
  }

  valueOfNumber(schema) {
    const random = this.random;
    const least = schema.minimum ?? schema.exclusiveMinimum, most = schema.maximum ?? schema.exclusiveMaximum;
    if (least !== undefined && random.chance(0.3)) return least;
    if (most !== undefined && random.chance(0.3)) return most;
    let number = this.number();
    if (least !== undefined && most !== undefined && random.chance(0.8)) number = least + (most - least) * random.next();
    else if (least !== undefined && random.chance(0.8)) number = least + Math.abs(number);
    else if (most !== undefined && random.chance(0.8)) number = most - Math.abs(number);
    if (!Number.isFinite(number)) number = 0;
    return schema.multipleOf ? Math.round(number / schema.multipleOf) * schema.multipleOf : number;
  }

  valueOfString(schema) {
    const random = this.random;
    let text = random.pick(WORDS);
    if (schema.pattern) text = random.pick(PATTERNS.find(([pattern]) => pattern === schema.pattern)[1]);
    // Cut off, it would be no usual text of its format.
    else if (schema.format) return random.pick(FORMATS[schema.format] ?? WORDS);
    const characters = [...text];
    if (schema.maxLength !== undefined && characters.length > schema.maxLength) text = characters.slice(0, schema.maxLength).join('');
    if (schema.minLength !== undefined && characters.length < schema.minLength) text += 'z'.repeat(schema.minLength - characters.length);
    return text;
  }

  valueOfArray(schema, depth) {
    const least = schema.minItems ?? 0, most = schema.maxItems ?? least + 3;
    const prefix = schema.prefixItems ?? [];
    const count = depth > 6 ? least : this.random.integer(least, Math.max(least, schema.items === false ? Math.min(most, prefix.length) : most));
    return Array.from({ length: count }, (_, i) => this.value(prefix[i] ?? schema.items ?? true, depth + 1));
  }

  valueOfObject(schema, depth) {
    const random = this.random;
    const required = schema.required ?? [];
    const properties = schema.properties ?? {};
    const names = Object.keys(properties).filter((name) => required.includes(name) || (depth < 6 && random.chance(0.5)));
    for (const name of required) if (!names.includes(name)) names.push(name);
    if (schema.additionalProperties !== false && !schema.propertyNames && random.chance(0.4)) names.push(random.pick([...NAMES, 'more']));
    return Object.fromEntries(random.shuffle([...new Set(names)]).map((name) =>
      [name, this.value(properties[name] ?? schema.additionalProperties ?? true, depth + 1)]));
  }

  // The value with one small change somewhere.
  mutated(value) {
    const random = this.random;
    switch (typeOf(value)) {
      case 'array': {
        const copy = [...value];
        const at = random.integer(0, copy.length);
        if (at < copy.length && random.chance(0.6)) copy[at] = this.mutated(copy[at]);
        else if (at < copy.length && random.chance(0.5)) copy.splice(at, 1);
        else copy.splice(at, 0, copy.length && random.chance(0.7) ? copy[0] : this.anything(2));
        return copy;
      }
      case 'object': {
        const names = Object.keys(value);
        const at = random.integer(0, names.length);
        const copy = { ...value };
        if (at < names.length && random.chance(0.7)) copy[names[at]] = this.mutated(value[names[at]]);
        else if (at < names.length) delete copy[names[at]];
        else copy[random.pick([...NAMES, 'more'])] = this.anything(2);
        return copy;
      }
      case 'number': {
        const number = random.pick([value + 1, value - 1, value / 2, value * 2, -value, value + 0.5, Math.round(value), value * (1 + 2 ** -52), this.number()]);
        return Number.isFinite(number) ? number : 0;
      }
      case 'string': {
        const characters = [...value];
        const at = random.integer(0, characters.length);
        characters.splice(at, random.integer(0, 1), ...random.chance(0.7) ? [random.pick([...'aZ0-.:/@ "\\\né😀'])] : []);
        return characters.join('');
      }
      default: return this.anything(1);
    }
  }
}
