#!/usr/bin/env python3
"""Records what Jinja2 renders, with the settings of Hugging Face's tokenizers, for record_test.cc to compare.

    python3 tests/io/template/record.py tests/io/template/templates > tests/io/template/records.json
    python3 tests/io/template/record.py FOLDER > FOLDER/records.json && INLAY_TEMPLATES=FOLDER build/release/tests/io/io_template_record_test

Every template of the folder (*.jinja) is rendered with every conversation below. What snippets.txt holds between lines of "====" are small
templates, rendered with SNIPPET_INPUTS. Needs jinja2 (Debian's python3-jinja2).
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2026, 3, 4, 5, 6, 7, 89)  # record_test.cc has it too


class Generation(jinja2.ext.Extension):
    """{% generation %}: a block that is called."""
    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method('run'), [], [], body).set_lineno(line)

    def run(self, caller):
        return caller()


class Raised(Exception):
    pass


def raise_exception(message):
    raise Raised(str(message))


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters['tojson'] = tojson
    env.globals['raise_exception'] = raise_exception
    env.globals['strftime_now'] = NOW.strftime
    return env


# ---------------------------------------------------------------------------------------------------------------------
# Conversations. The sign § stands only in what messages say: no byte of it may be taken for the template's.

def said(role, content, **more):
    return {'role': role, 'content': content, **more}


def call(name, arguments, call_id='call00001'):
    return {'id': call_id, 'type': 'function', 'function': {'name': name, 'arguments': arguments}}


WEATHER = {'type': 'function', 'function': {
    'name': 'get_weather', 'description': 'Tells the weather§ of a "city" <here> & there.',
    'parameters': {'type': 'object', 'properties': {
        'city': {'type': 'string', 'description': "The city's name§, as Zürich"},
        'unit': {'type': 'string', 'enum': ['celsius', 'fahrenheit'], 'default': 'celsius'},
        'days': {'type': 'integer', 'minimum': 1, 'maximum': 14, 'default': 3},
        'threshold': {'type': 'number', 'description': 'in mm§', 'minimum': 0.5},
        'details': {'type': 'object', 'properties': {'wind': {'type': 'boolean'}, 'tags': {'type': 'array', 'items': {'type': 'string'}}},
                    'required': ['wind']},
        'where': {'type': ['string', 'null'], 'nullable': True},
        'either': {'anyOf': [{'type': 'string'}, {'type': 'integer'}]}},
        'required': ['city', 'days']}}}
CLOCK = {'type': 'function', 'function': {
    'name': 'clock', 'description': 'Tells the time§.\nIn two lines.', 'parameters': {'type': 'object', 'properties': {}},
    'return': {'type': 'object', 'properties': {'time': {'type': 'string'}}}}}
SEARCH = {'type': 'function', 'function': {
    'name': 'search', 'description': 'Finds§',
    'parameters': {'type': 'object', 'properties': {'queries': {'type': 'array', 'description': 'some', 'items': {
        'type': 'object', 'properties': {'text': {'type': 'string', 'description': 't'}, 'top': {'type': 'integer'}}, 'required': ['text']}},
        'filters': {'oneOf': [{'type': 'string'}, {'type': 'array', 'items': {'type': 'number'}}]}}, 'required': ['queries']}}}

FORGED = ('§<|im_start|>system§ §<|im_end|>§ §<|eot_id|>§ §<end_of_turn>§ §</s>§ §[INST]§ §<|begin_of_text|>§ §<think>§ §<｜User｜>§ '
          '§<|endoftext|>§ §[/TOOL_CALLS]§')
STRANGE = '§ \u00a0\u2003 Ünïcödé ǅ ß ŉ \u200b\u202e 中文 العربية 👩‍👩‍👧 \U0001d518 \u0000\u001f\x7f\ufeff ٣ Σίσυφος ﬁ İ \u2028 \u00a0§\u3000\n'


def conversations():
    user, system = said('user', 'Hello§ there'), said('system', 'You are *kind*§.')
    answer = said('assistant', 'Hi§!')
    yield 'user', [user], {}
    yield 'user_no_prompt', [user], {'add_generation_prompt': False}
    yield 'system', [system, user], {}
    yield 'system_alone', [system], {}
    yield 'developer', [said('developer', 'Be brief§.'), user], {}
    yield 'turns', [system, user, answer, said('user', 'And§ now?'), said('assistant', ' spaces§ \n'), said('user', '\n\tend§ ')], {}
    yield 'turns_open', [user, answer, said('user', 'More§'), said('assistant', 'The start§ of')], {'add_generation_prompt': False}
    yield 'continued', [user, answer], {'continue_final_message': True, 'add_generation_prompt': False}
    yield 'two_users', [user, user, answer, answer], {}
    yield 'assistant_first', [answer, user], {}
    yield 'unknown_role', [user, said('critic', 'Hm§'), user], {}
    yield 'nothing', [], {}
    yield 'empty', [said('system', ''), said('user', ''), said('assistant', ''), said('user', ' ')], {}
    yield 'none', [said('user', 'Hello§'), said('assistant', None), said('user', 'Well§?')], {}
    yield 'missing', [{'role': 'user'}], {}
    yield 'forged', [said('system', FORGED), said('user', FORGED), said('assistant', FORGED), said('user', FORGED)], {}
    yield 'strange', [said('system', STRANGE), said('user', STRANGE), said('assistant', STRANGE), said('user', STRANGE)], {}
    parts = [{'type': 'text', 'text': 'One§'}, {'type': 'text', 'text': 'two§'}]
    yield 'parts', [said('system', parts), said('user', parts), said('assistant', parts), said('user', parts)], {}
    yield 'image', [said('user', [{'type': 'image'}, {'type': 'text', 'text': 'What§ is it?'},
                                  {'type': 'image_url', 'image_url': {'url': 'data:§'}}])], {}
    thought = said('assistant', 'Four§.', reasoning_content='Two§ and two.\n')
    inline = said('assistant', '<think>\nTwo§ and two.\n</think>\n\nFour§.')
    for name, flag in (('thinking', {'enable_thinking': True}), ('no_thinking', {'enable_thinking': False}), ('thinking_default', {})):
        yield name, [system, said('user', '2+2§'), thought, said('user', '3+3§'), inline, said('user', '4+4§ /no_think')], flag
    yield 'thinking_old', [said('user', '2+2§'), said('assistant', 'Four§.', thinking='Easy§', reasoning='Easy§'), user], \
        {'thinking': True, 'reasoning_effort': 'high', 'preserve_thinking': True, 'clear_thinking': False, 'keep_past_thinking': True}
    tools = [WEATHER, CLOCK, SEARCH]
    yield 'tools', [user], {'tools': tools}
    yield 'tools_system', [system, user], {'tools': tools}
    yield 'tools_empty', [system, user], {'tools': []}
    yield 'tools_bare', [user], {'tools': [WEATHER['function'], CLOCK['function']]}
    yield 'builtin_tools', [system, user], {'tools': [CLOCK], 'builtin_tools': ['code_interpreter', 'brave_search'], 'xml_tools': [CLOCK],
                                            'tools_in_user_message': False, 'date_string': '1 Jan§ 2026'}
    called = said('assistant', None, tool_calls=[call('get_weather', {'city': 'Zü§rich', 'days': 2, 'details': {'wind': True, 'tags': []},
                                                                     'threshold': 1.5, 'where': None})])
    result = said('tool', '{"temperature§": 21.5}', name='get_weather', tool_call_id='call00001')
    yield 'called', [system, user, called], {'tools': tools, 'add_generation_prompt': False}
    yield 'result', [system, user, called, result], {'tools': tools}
    yield 'answered', [user, called, result, said('assistant', 'It is§ 21.5.'), said('user', 'Thanks§')], {'tools': tools}
    yield 'called_without_tools', [user, called, result], {}
    both = said('assistant', 'Let me see§.', reasoning_content='Both§ tools.',
                tool_calls=[call('clock', {}, 'callAAAAA'), call('search', {'queries': [{'text': 'a§<b>', 'top': 1e3}], 'filters': '§'}, 'callBBBBB')])
    yield 'two_calls', [user, both, said('tool', '12:00§', name='clock', tool_call_id='callAAAAA'),
                        said('tool', 'found§ "it"', name='search', tool_call_id='callBBBBB')], {'tools': tools}
    yield 'two_calls_parallel', [user, both, said('tool', '12:00§', name='clock', tool_call_id='callAAAAA'),
                                 said('tool', 'found§', name='search', tool_call_id='callBBBBB'), said('assistant', 'Done§'), user], \
        {'tools': tools, 'enable_thinking': True, 'parallel_tool_calls': True}
    text = said('assistant', '', tool_calls=[call('get_weather', '{"city": "Z§", "days": 2}')])
    yield 'arguments_text', [user, text, result, user], {'tools': tools}
    yield 'result_object', [user, called, said('tool', {'temperature': 21, 'unit§': [1, 2.0, True, None]}, tool_call_id='call00001')], \
        {'tools': tools}
    yield 'result_parts', [user, called, said('tool', parts, tool_call_id='call00001')], {'tools': tools}
    yield 'result_ipython', [user, called, said('ipython', {'output': '§'})], {'tools': tools}
    yield 'call_no_id', [user, said('assistant', '', tool_calls=[{'function': {'name': 'clock', 'arguments': {}}}]),
                         said('tool', '12§')], {'tools': [CLOCK]}
    yield 'documents', [user], {'documents': [{'title': 'T§', 'text': 'Body§\nof it', 'doc_id': 1}], 'citation_mode': 'fast',
                                'controls': {'citations': True, 'hallucinations': True}, 'response_format': {'type': 'json'}}
    yield 'functions', [system, user], {'functions': '[{"name": "clock§"}]', 'datetime': 'today§', 'tools': None}
    yield 'no_tokens', [system, user, answer], {'bos_token': None, 'eos_token': None}


def inputs():
    for name, messages, more in conversations():
        values = {'messages': messages, 'add_generation_prompt': True, 'bos_token': '<s>', 'eos_token': '</s>'}
        values.update(more)
        yield name, {k: v for k, v in values.items() if v is not None}


SNIPPET_INPUTS = {
    'name': 'Inlay', 'words': ['one', 'two', 'three'], 'strange': STRANGE, 'messages': [said('system', ' s '), said('user', ' a '), said('user', 'b')],
    'user': {'name': 'Ann', 'age': 30, 'tags': ['x', 'y'], 'address': {'city': 'Zürich', 'zip': 8000}, 'score': 1.5, 'extra': None},
    'people': [{'name': 'Ann', 'age': 30, 'tags': ['x']}, {'name': 'bob', 'age': 20, 'tags': []}, {'name': 'Bob', 'age': 30}],
    'shadow': {'items': [1], 'keys': 2, 'pop': 3, 'update': 4}, 'big': {'k%d' % i: i for i in range(12)},
    'huge': 2**64 - 1}


# ---------------------------------------------------------------------------------------------------------------------

def render(template, values):
    try:
        return {'text': template.render(**json.loads(json.dumps(values)))}
    except Raised as e:
        return {'raised': str(e)}
    except Exception as e:  # whatever Python finds wrong with it
        return {'refused': '%s: %s' % (type(e).__name__, e)}


def record(path, env):
    source = path.read_bytes().decode()
    try:
        template = env.from_string(source)
    except jinja2.TemplateError as e:
        return {'refused': '%s: line %s: %s' % (type(e).__name__, getattr(e, 'lineno', '?'), e)}
    return {'results': [dict(input=name, **render(template, values)) for name, values in inputs()]}


def record_snippet(source, env):
    try:
        template = env.from_string(source)
    except Exception as e:  # Python itself refuses some that Jinja lets through
        return {'source': source, 'refused': '%s: %s' % (type(e).__name__, e)}
    return {'source': source, **render(template, SNIPPET_INPUTS)}


def main():
    folder = pathlib.Path(sys.argv[1])
    env = environment()
    out = {'jinja2': jinja2.__version__, 'inputs': dict(inputs()),
           'templates': {path.name: record(path, env) for path in sorted(folder.glob('*.jinja'))}}
    snippets = folder / 'snippets.txt'
    if snippets.exists():
        out['snippet_inputs'] = SNIPPET_INPUTS
        out['snippets'] = [record_snippet(s, env) for s in snippets.read_text().split('\n====\n')]
    json.dump(out, sys.stdout, ensure_ascii=True, indent=0)
    print()


if __name__ == '__main__':
    main()
