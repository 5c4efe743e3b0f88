#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/templates/: what Python's Jinja2, set up as Hugging Face sets it up for chat templates, makes
("output") of small templates (snippets.jsonl), or that it refuses them ("error"); and, anew, the same of the real
templates in real.tar.xz for the variables in its cases.jsonl.

    python3 tools/make_template_vectors.py   (needs: pip install jinja2)
"""
import datetime
import io
import json
import pathlib
import tarfile

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "templates"
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
VARS = {
    "s": "Hello World", "u": "Grüße, 世界 🦙!", "e": "", "w": "  \t two words \n ", "i": 7, "neg": -3, "f": 2.5, "big": 1e20, "tiny": 1.5e-7, "t": True,
    "n": None, "l": [3, 1, 2], "el": [], "names": ["b", "A", "c", "a"], "d": {"x": 1, "items": 2, "y": {"z": [1, "q'\"", None, True, 1.0]}}, "ed": {},
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U1"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "U2"}],
    "html": "<a href=\"x\">&'</a>", "lines": "one\n\ntwo\n  three",
}

EXPRESSIONS = r"""
s  u  e  i  f  big  tiny  t  n  l  d  nothing  1e16  123456789012345.0  0.1  1e-5  100.0  -0.0  1_000  [1.0, -2.5, 1e100]
s|length  u|length  l|length  d|length  nothing|length  i|length  n|length
1 + 2 * 3  (1 + 2) * 3  7 // 2  -7 // 2  7 % 3  -7 % 3  7 / 2  2 ** 10  2 ** -1  7.5 // 2  -7.5 % 2  1 / 0  -i  +i  --i  - i|abs  not t  not not e
9223372036854775807 + 0  s + 1  s + s  l + [4]  l + s  s * 3  3 * l  e * 5  i * f  t + 1  n + 1  nothing + 1  [1] * -1
s ~ 1 ~ n ~ t ~ f  nothing ~ 'x'  1 ~ 2 + 3  'a' 'b'  "a'b"  'a"b'  'tab\tnl\nq\'u\u00e9x\x41\101\zend'  '\\'
1 < 2 < 3  1 < 3 < 2  1 == 1.0  true == 1  'a' < 'b'  'a' < 1  [1, 2] < [1, 3]  l == [3, 1, 2]  d == {'x': 1}  n == none  nothing == nothing2  nothing == none  nothing < 1
'ell' in 'hello'  3 in l  '3' in l  'x' in d  5 not in l  'a' in nothing  1 in 's'  1 in 5  not 1 in l
t and e  t and 5  e or 'x'  n or e or 0  t or 1/0  not e and t  1 if t else 2  1 if e else 2  1 if e  (1 if e) is defined  'a' if t else 'b' if e else 'c'
l[0]  l[-1]  l[9]  l[9] is defined  s[0]  s[-1]  u[2]  u[-2]  l['x']  d['x']  d.x  d.y.z[1]  d['nope']  d.nope  d.nope.deeper  d.items  d['items']  nothing.x  nothing['x']  n.x  i.x  s.nope  l.0
l[1:]  l[:1]  l[::-1]  l[::2]  s[1:4]  s[::-1]  u[-3:]  u[:3]  l[5:]  l[-2:]  l[1:2:1]  s[::3]  n[1:]  nothing[1:]  l[::0]  l[-9:9]
l is iterable  s is iterable  i is iterable  nothing is iterable  d is mapping  l is mapping  s is string  n is none  n is not none  nothing is defined  nothing is undefined  nothing is not defined  i is number  t is number  f is float  i is integer  t is integer  t is boolean  t is true  e is false  l is sequence  d is sequence  i is sequence  range is callable  i is odd  i is even  i is divisibleby 7  i is divisibleby(2)  i is eq 7  i is equalto(8)  i is gt(3)  i is in [1, 7]  s is upper  'AB' is upper  'ab' is lower  nothing is none  n is defined  n is string  1.5 is odd
w|trim  'xxaxx'|trim('x')  s|upper  s|lower  u|upper  'straße'|upper  'hello wOrld'|title  "it's a-b (c) 1e x_y"|title  "it's a-b (c) 1e x_y".title()  u.title()  u|title  'ªb ×a'.title()  5|indent  'hELLO'|capitalize  'ΑΒΓ абв ÀÉÎ'|lower  'αβγ АБВ àéî'|upper
s|replace('o', '0')  s|replace('o', '0', 1)  'aaa'|replace('', '-')  i|replace('7', '8')  s|first  s|last  l|first  el|first  el|first is defined  l|last  l|sort  l|sort(reverse=true)  names|sort  names|sort(case_sensitive=true)  l|sum  l|min  l|max  l|join('-')  l|join  messages|map(attribute='role')|join(',')  messages|join('|', attribute='content')  l|reverse|list  s|reverse  s|list  d|list
names|unique|list  [1, 1.0, true, 2]|unique|list  messages|selectattr('role', 'equalto', 'user')|list|length  messages|rejectattr('role', 'in', ['user'])|map(attribute='content')|list  l|select('odd')|list  l|reject('gt', 1)|list  [0, 1, '', 'a', none]|select|list  messages|selectattr('nope')|list  names|map('upper')|list  names|map('replace', 'a', 'z')|join(' ')  messages|map(attribute='nope', default='-')|join  l|map('string')|list
nothing|default('x')  e|default('x')  e|default('x', true)  n|d('y')  n|default('y', boolean=true)  nothing|trim  nothing|upper  nothing|join  nothing|list  nothing|first  nothing|string  n|string  l|string  d|string  f|string  t|string
'3'|int  '3.7'|int  'x'|int  'x'|int(5)  3.9|int  -3.9|int  '2.5'|float  'x'|float(1.5)  neg|abs  f|round  3.14159|round(2)  2.675|round(2)  0.125|round(2)  5|round  t|round(1)  17|round(-1)  17.0|round(-1)  5|round(0, 'ceil')  1e300|round(3)  2.7|round(0, 'floor')  2.1|round(method='ceil')  '  12 '|int  t|int
d|tojson  l|tojson  u|tojson  html|tojson  n|tojson  t|tojson  f|tojson  big|tojson  'q"\\\n\t\x01\x7f'|tojson  d|tojson(indent=2)  [] |tojson(indent=4)  {'b': 1, 'a': [1, {}]}|tojson(indent=2, sort_keys=true)  {1: 2, true: 3, none: 4}|tojson  (1, 2)|tojson  nothing|tojson  messages|map(attribute='role')|tojson  range|tojson  l|tojson(separators=(',', ':'))  u|tojson(ensure_ascii=true)
'%s' % s  '%d' % i  '%s-%s' % (1, s)  '%5d|%-5d|%05d|%+d|% d' % (1, 2, 3, 4, 5)  '%.2f' % f  '%8.3f|%-8.1f|%08.2f|%+.0f' % (f, f, f, f)  '%x %X %o %#x' % (255, 255, 8, 255)  '%e %g %G' % (big, tiny, f)  '%%' % ()  '%(x)s %(y)s' % d  '%5s|%-5s|%.2s' % (u, e, u)  '%5.1s|' % u  '%d' % 3.7  '%d' % neg  '%05d' % neg  '%d' % 'x'  '%s' % (1, 2)  '%s %s' % s  '%s' % l  '%s' % [1]  'x' % []  'x' % d  'x' % 1  '%(q)s' % d  '%(x)s' % s  '%' % 1  '%(x' % d  '%y' % 1  '%s' % n  '%s' % nothing  '%d' % t  '%i' % i  '%.3d' % i  '%x' % f  '%x' % neg  '%s %s'|format(s, i)  '%(a)s'|format(a=s)  '%02d'|format(i)  '%s'|format  i|format  '%#.0f' % 3  '%#x' % neg  '%ld' % i  '%.0d' % 0
d|items|list  d.items()|list  d|dictsort  {'b': 1, 'A': 2, 'c': 0}|dictsort  {'b': 1, 'A': 2, 'c': 0}|dictsort(true)  {'b': 1, 'A': 2, 'c': 0}|dictsort(false, 'value')  {'b': 1, 'A': 2, 'c': 0}|dictsort(reverse=true)  n|items  nothing|items|list  s|items
d.get('x')  d.get('nope')  d.get('nope', 5)  d.keys()|list  d.values()|list|length  d.pop('x')  l.index(1)  l.count(2)  d.update({})  l.nope()  nothing()  i()  nope(1)
s.split()  s.split('o')  s.split('o', 1)  s.split('xyz')  w.split()  ' a  b '.split(' ')  'a,b,c'.rsplit(',', 1)  'a\nb\r\nc'.splitlines()  s.upper()  s.lower()  'x y'.title()  s.startswith('He')  s.endswith(('x', 'ld'))  s.startswith(1)  w.strip()  'xxaxx'.strip('x')  'xxaxx'.lstrip('x')  'xyaxy'.rstrip('yx')  s.replace('l', 'L', 2)  s.find('o')  s.find('z')  s.count('l')  s.index('z')  ', '.join(names)  ', '.join(l)  '12'.isdigit()  'ab'.isalpha()  ''.isdigit()  'a1'.isalnum()  ' \n'.isspace()  'prefix-x'.removeprefix('prefix-')  s.capitalize()  s.split('')  'Ab'.isupper()
'a\nb'|indent  'a\n\nb'|indent(2)  'a\nb'|indent(2, true)  lines|indent(3, blank=true)  'a\nb'|indent('> ')  html|safe
range(3)|list  range(1, 7, 2)|list  range(5, 0, -2)|list  range(3)|length  range(0)|list  range(1000000)  range(1, 5, 0)  range()  range('a')
namespace(a=1).a  dict(a=1, b='x')  {'a': 1, 'b': [1, 2]}  {}  []  ()  (1,)  (1, 2)  [1, 'a', none]  {'a': 1,}  [1, 2,]  {'a': 1}['a']  {'a' 'b': 1}  1, 2
strftime_now('%Y-%m-%d')  strftime_now('%d %b %Y, %A %H:%M:%S %j')  strftime_now('')  raise_exception('no ' ~ s)  lipsum2()
messages|unique|list  l in d  d.get(l)  d[l]  d[l] is defined  (1, l) in d  {(1, l): 2}  nothing is callable  {nothing: 1}|length  2.0 ** -44  -(2.0 ** -44)  2.0 ** 70  2.0 ** -1074  2.0 ** -1022  0.1 + 0.2  1 / 3  0.0 ** -1  0 ** -1  2 ** -1  1e+5  1E5  1.5e+3  0x1F  0XfF  0b11  0o17  0x  1_0.5e-1_0  1 is sameas true  1 is sameas 1.0  true is sameas true  n is sameas none  l is sameas l  [] is sameas []  s is sameas 'x'
d|tojson(indent='\t')  d|tojson(indent=-1)  d|tojson(indent=true)  d|tojson(indent=0)  l|tojson(indent=none)  l|tojson(indent=1.5)  'a\nb'|indent(true)  'a\nb'|indent(-2)  'a\nb'|indent(1.5)
' a b  c '.split(None, 1)  ' a b  c '.split(maxsplit=1)  '  a b  c '.rsplit(None, 1)  '  a b  c '.rsplit(maxsplit=1)  'a,b,c'.rsplit(sep=',', maxsplit=1)  'a,b,c'.split(sep=',')  'aaa'.rsplit('aa', 1)  'aaa'.split('aa', 1)  'aXbXc'.rsplit('X')  ' '.split()  ''.split(',')  ' a '.split(None, 0)  ' a '.rsplit(None, 0)  '世 界 '.rsplit(None, 1)  ',a,'.rsplit(',')  ''.rsplit()  'ab'.rsplit('abc')
'a\nb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h\r\ni\rj'.splitlines()  'a\nb\n'.splitlines(true)  'a\r\nb'.splitlines(keepends=true)  ''.splitlines()  'a\r\nb\x0bc'|indent  'a\r'|indent(1, true, true)  'a\r\n'|indent(1, true, true)  ''|indent(1, true)
'99'|int(0, 16)  'ff'|int(base=16)  '0x1f'|int(0, 16)  'zz'|int(7, 16)  [[1], [2]]|sum(start=[])  [1, 2]|sum(start=10)  messages|map(attribute='content')|sum(start='')  [0.5, 1]|sum  [1, 'a']|sum  messages|sum('content')
[{'a': 3}, {'a': 5}]|max(attribute='a')  [{'a': 3}, {'a': 5}]|min(attribute='a')  ['a', 'A', 'b', 'B']|max  ['b', 'B', 'a', 'A']|min  ['a', 'A', 'b', 'B']|max(case_sensitive=true)  []|max  [1, 'a']|max  [[1, 2], [1, 3]]|max
dict(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9)  namespace(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10).j  {'a': 1}.copy()  l.copy()  (1, 2).copy()
'é'.isalpha()  '。'.isalpha()  '½'.isalnum()  '½'.isdigit()  '٣'.isdigit()  '²'.isdigit()  '世'.isalpha()  '🦙'.isalpha()  'Ǆ İ ẞ Ⴀ Ω'.lower()  'ǆ ά ϊ ё ѓ ә ա ᏸ'.upper()  'ǆa ßa 世a'.title()  'ǆA'.capitalize()  'ǆA'|title
['\u200b', '\ufeff', '\ue000', '\U000e0001', '👩\u200d🚀', '\u0378', '\u3000', 'é', '世']
[1, [2, 'x'], {'k': ('t',)}]  ["it's", 'say "hi"', 'both \' and "', 'nl\n', 'é\xa0\u2028']  [true, none, 1.5]  [nothing]
"""

TEMPLATES = [
    "{% raw %}\nx\n{% endraw %}\ny", "{% raw -%}\n x{% endraw -%}\ny", "a\u3000{%- if t -%}\u00a0b{%- endif %}", "a\n\u3000{% if t %}b{% endif %}", "a\n\x0b{% if t %}b{% endif %}", "{{\u00a0i\u3000}}", "a\u200b{%- if t %}b{% endif %}",
    "{% for x in [] %}{% else %}{% set y = 1 %}{{ y }}{% endfor %}{{ y }}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in 1, %}{{ x }}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% set (a, (b, c)) = (1, (2, 3)) %}{{ c }}{{ a }}",
    "{% set ns = namespace(done=false) %}{% for m in l if not ns.done %}{{ m }}{% set ns.done = true %}{% endfor %}", "{% set ns = namespace(done=false) %}{% for m in l if not ns.done %}{{ m }}{{ loop.last }}{{ loop.nextitem }}{% set ns.done = true %}{% endfor %}", "{% set ns = namespace(n=0) %}{% for m in l if ns.n < 2 %}{{ loop.length }}{{ loop.revindex }}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "{% for x in [1, 2, 3, 4] if x is odd %}{{ loop.index }}{{ x }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.last }} {% endfor %}",
    "{% for x in l %}{% for y in l if y > x %}{{ x }}{{ y }}{{ loop.first }}{% else %}-{% endfor %}{% endfor %}", "{% set ns = namespace(f=0) %}{% for x in l %}{% set ns.f = loop %}{% endfor %}{{ ns.f.index }}", "{% for x in l if x > 1 %}{% break %}{% endfor %}x", "{% for x in l if x / 0 %}{% endfor %}",
    "a\n{% if t %}\n  yes\n{% endif %}\nb\n", "a\n  {% if t %}\n  yes\n  {% endif %}\nb", "a\n  {{ i }}\nb\n\n", "x {%- if t -%}  y  {%- endif -%} z", "x {%+ if t %}\ny{%+ endif +%}\nz",
    "  {# c #}\n  a {# d #} b\n{#- e -#}\n c", "{{- s -}}  x  {{ i -}}\n\n y", "\n\n{{ s }}\n", "\t{% set a = 1 %}\n\t{{ a }}\n", "a\r\n{% if t %}\r\nb\r{% endif %}\r\nc\r\n", "{% raw %}{{ x }} {% if %}{% endraw %}\nx", " {%- raw -%}  {{ y }} {%- endraw -%} z",
    "{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}} }}", "{% for m in messages %}{{ m.role }}={{ m['content'] }};{% endfor %}", "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in el %}x{% else %}empty{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }};{% endfor %}", "{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}", "{% for a, b in [1] %}{{ a }}{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }} {% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in nothing %}a{% else %}b{% endfor %}",
    "{% set x = 1 %}{% for y in l %}{% set x = y %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=0) %}{% for y in l %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}", "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}", "{% for y in l %}{% if loop.first %}{% set z = 5 %}{% endif %}{{ z }},{% endfor %}{{ z }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set (a, b) = l[:2] %}{{ a }}{{ b }}", "{% set x %}block {{ i }}{% endset %}[{{ x }}]", "{% set x | upper | replace('B', '8') %}block{% endset %}{{ x }}", "{% set d.x = 1 %}", "{% set s.x = 1 %}", "{% set x = nothing %}{{ x is defined }}", "{% set m = messages %}{% set m = m[1:] %}{{ m|length }}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}", "{% break %}",
    "{% if e %}a{% elif t %}b{% else %}c{% endif %}", "{% if e %}a{% elif n %}b{% else %}c{% endif %}", "{% if not messages %}none{% elif messages[0].role == 'system' %}sys{% endif %}", "{% if nothing is defined and nothing.x %}a{% endif %}ok", "{% if nothing.x %}a{% endif %}",
    "{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=3) }} {{ f(1, 2, 3) }} {{ f() }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}", "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f() %}{{ g }}{% endmacro %}{% set g = 5 %}{{ f() }}", "{% macro f(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ f(1) }}{{ y }}", "{% macro f() %}a\nb{% endmacro %}{{ f()|upper }}{{ f()|length }}", "{% set x = 1 %}{% macro f() %}{% set x = 2 %}{{ x }}{% endmacro %}{{ f() }}{{ x }}",
    "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|join('+') }}", "{{ messages[-1]['content'] if messages[-1]['role'] == 'user' else 'none' }}", "{% for m in messages[::-1] %}{{ m.content }}{% endfor %}", "{% for m in messages %}{{ m|tojson }}{{ ',' if not loop.last }}{% endfor %}",
    "{% set ns = namespace(f=none) %}{% macro o(x) %}{% macro m() %}{{ x }}{% endmacro %}{% set ns.f = m %}{% endmacro %}{{ o(1) }}{% set f = ns.f %}{{ o(2) }}{{ f() }}{{ ns.f() }}",
    "{% for a in l %}{% set p = a %}{% for b in l if b != p %}{% set q = b %}{{ p }}{{ q }}{% endfor %}{{ q is defined }}{{ p }} {% endfor %}",
    "{{ x|nofilter }}", "{% if e %}{{ x|nofilter }}{% endif %}ok", "{% if t %}{{ x|nofilter }}{% endif %}", "{{ x is notest }}", "{{ 1 if t else x|nofilter }}", "{% unknown %}", "{% if t %}", "{% endif %}", "{{ 1 + }}", "{{ (1 }}", "{{ 'a }}", "{% for %}{% endfor %}", "{{ 1 2 }}", "{% if t %}{% endfor %}", "{# open", "{{ a.}}", "{% set = 1 %}", "{{ ; }}", "{% raw %}x", "{{ [1 }}", "{{ x[] }}", "{{ f(a=1, 2) }}", "{% set x = 1, 2 %}{{ x }}", "}} %} #}", "{ { % x", "{{ \"{{\" }}", "",
    "{{ loop }}", "{{ loop is defined }}", "{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}{{ False }}", "{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns.b is defined }}", "{% set ns = namespace({'q': 1}, z=2) %}{{ ns.q }}{{ ns.z }}",
    "{% for m in messages if m.role == 'user' %}{% if loop.last %}{{ m.content }}{% endif %}{% endfor %}", "{{ raise_exception('bad\nthing') }}", "{%- for x in l -%}\n  {{ x }}\n{%- endfor %}\n end", "{% if t %}a{% else %}\nb{% endif %}\n\nc", "a{{ nothing }}b{{ e }}c{{ '' }}d",
]


MORE = r"""
'{} {}'.format(1,'x')  '{1}{0}'.format(1,2)  '{0}{}'.format(1,2)  '{}{0}'.format(1,2)  '{a} {b}'.format(a=1,b=2)  '{}'.format()  '{a}'.format()  '{0[x]}'.format(d)
'{0.x}'.format(d)  '{0[0]}'.format(l)  '{0[9]}'.format(l)  '{0[-1]}'.format(l)  '{d[x]}{d.y}'.format(d=d)  '{0.nope}'.format(d)  '{!r}'.format('a"\'b')  '{!s}'.format(1)
'{!a}'.format('é世🦙')  '{!r:>10}'.format('é')  '{!x}'.format(1)  '{!}'.format(1)  '{!r'.format(1)  '{!rr}'.format(1)  '{{}}'.format()  '{{{}}}'.format(1)  '{'.format()
'}'.format()  'a}b'.format()  '{}}'.format(1)  '{:{}}'.format('a',5)  '{:{w}}'.format('a',w=5)  '{:{}{}}'.format('a','>',5)  '{:{:{}}}'.format('a',5,1)
'{:{{}}}'.format('a')  '{0:{1}}'.format('a',5)  '{0:{}}'.format('a',5)  '{:{0}}'.format('a',5)  '{.x}'.format(d)  '{[0]}'.format(l)  '{0.}'.format(d)  '{0[}'.format(d)
'{0[]}'.format(d)  '{0[x]y}'.format(d)  '{0[x].y}'.format(d)  '{0.y.z[1]}'.format(d)  '{0[y][z][1]}'.format(d)  '{ }'.format(1)  '{ 0}'.format(1)
'{a b}'.format(**{'a b':1})  '{x}{items}'.format(**d)  '{}-{}-{}'.format(*l)  '{}{k}'.format(*[1],k=2)  '{x}'.format_map(d)  '{}'.format_map(d)  '{q}'.format_map(d)
'{x}'.format_map(x=1)  '{x}'.format_map(1)  '{:>{w}.{p}f}'.format(3.14159,w=10,p=2)  '{a!r:^{w}}'.format(a='q',w=9)  '{0.real}{0.imag}'.format(5)  '{:5}'.format(none)
'{}'.format(nothing)  '{:5}'.format(nothing)  '{:5}'.format(l)  '{}'.format(l)  '{!s:5}|'.format(none)  '{0.__class__}'.format(1)  '{0!r:{1}}'.format('a',4)
'{1000000000000000000000}'.format(1)  '{a[b}'.format(a=1)  '{a{b}'.format(a=1)  '{a:b{c}'.format(a=1)  '{:%Y}'.format(1)  '{0}{a}{0}'.format(1,a=2)  '{٣}'.format(1)
'{:s}{:d}'.format('a',3)  s.format(1)  ('a%sb' % 1).format()  "{:,}".format(1234567)  "{:,.2f}".format(1234.5)  "{:_}".format(1234567)  "{:_x}".format(123456789)
"{:#_b}".format(255)  "{:020_b}".format(255)  "{:021,}".format(12345)  '{:c}'.format(128512)  '{:c}'.format(-1)  '{:c}'.format(1114112)
'{:5c}|{:<5c}|{:^5c}|{:05c}|{:=5c}'.format(65,65,65,65,65)  '{:+c}'.format(65)  '%r' % 'a'  '%r %a' % ('é','é')  '%c%c' % ('x',65)  '%c' % 'ab'  '%c' % -1  '%*d' % (5,3)
'%-*d|' % (5,3)  '%*d|' % (-5,3)  '%.*f' % (2,3.14159)  '%*.*f' % (8,2,3.14159)  '%*d' % ('a',3)  '%*d' % (3,)  '%5c|%-5c|' % ('x','y')  '%.1r' % 'abc'  '%5%' % ()
'%a' % l  '%r' % l  '%r' % d  '%.*s' % (-1,'abc')  '%+d' % true  '%#o' % 8  '%X' % 255  '%e' % 0  '%5.1f%%' % 99.55  '%s' % none  '%(a)*d' % {'a':1}  '%i' % 3.99
'%d' % -3.99  '%F' % 1e400  '%G' % 1e-10  '%.3g' % 1234567  '%.0e' % 12345  '%g' % 100000  '%g' % 1000000  '%#g' % 1  (5).bit_length()  (-5).bit_count()  (5).conjugate()
true.conjugate()  (5).real  (5).imag  (2.5).imag  (5).numerator  (5).denominator  true.real  (2.0).is_integer()  (2.5).is_integer()  f.is_integer()  i.bit_length()
(2.5).conjugate()  (2.5).numerator  (5).nope  (5).nope is defined  i.real is defined  (5).bit_length(1)  l.index(1)  l.index(9)  l.count(1)  l.copy()  l.index(1,1)
l.index(3,1)  l.index(2,-1)  l.index(1,0,1)  l.sort()  l.reverse()  l.insert(0,1)  l.extend([1])  l.remove(1)  l.clear()  (1,2,1).count(1)  (1,2).index(2)  (1,2).index(5)
(1,2).nope  (1,2).append(1)  d.fromkeys(['a','b'],0)  d.fromkeys('ab')  d.fromkeys()  d.copy()  d.get('x')  d.get('zz',4)  d.get()  d.get('x',default=1)
d.get('zz',default=1)  d.popitem()  d.setdefault('a',1)  d.update({'a':1})  d.clear()  d.pop('x')  l.nope is defined  s.nope is defined  s.format is defined
s.zfill is defined  d.nope is defined  l.sort is defined or true  dict([('a',1),('b',2)])  dict({'a':1},b=2)  dict(**{'a':1})  dict([['a',1]],a=3)  dict([1])  dict('ab')
dict(['ab','cd'])  dict(1)  dict(a=1,**{'b':2})  dict({'a':1},**{'b':2})  namespace([('a',1)]).a  list  range(stop=5)  range(1.5)
d.keys()  d.values()  ed.items()  {'a': 1}.items()  d.keys()|length  'x' in d.keys()  'y' if ed.keys() else 'n'  d.keys()[0]  d.keys()[0] is defined  d.keys()|first  d.values()|last  d.keys() + [1]  d.keys()|tojson  d.keys() is sequence  d.keys()[1:]  [d.keys()]  dict(d.items()).x  'a'.join({'x': 1}.keys())  5|round(0, 'foo')  d|dictsort(by='foo')  nothing|truncate(5)  s|replace('o', '0', none)  l|sort('a')  d|dictsort(reverse='a')
"""

# Each method of str with several arguments is called on some of these.
TEXTS = ["", "abc", "Hello World", "  hi there  ", "ÀÉßçñ straße", "ΑΣ ΣΑΣ. ΌΣΟΣ", "ﬁn ŉ İI ǆ ǅ Ǆ", "a\tb\n\tcc", "-12", "+7", "a,b,,c", "世界 🦙x", "x=y=z", "They're bill's", "١٢٣",
         "²³¼", "ⅷⅧ ⓐⒶ", "aaa", "one\ntwo\r\nthree", "Aʼnσς", "一二3", "ª·ʰ", "ʼΣ Σ.", "aΣ.b aΣ-", "name_1", "1name", "Title Case", "not Title", "ᾳ ᾼ ΐ և ﬄ"]
CALLS = r"""
upper()  lower()  title()  capitalize()  swapcase()  casefold()  isalpha()  isdecimal()  isdigit()  isnumeric()  isalnum()  isspace()  isascii()  isprintable()  isidentifier()  isupper()  islower()  istitle()
split()  rsplit()  splitlines()  strip()  lstrip()  rstrip()  expandtabs()  expandtabs(4)  expandtabs(0)  expandtabs(-1)  expandtabs(tabsize=3)  zfill(6)  zfill(0)  zfill('x')  zfill()
center(8)  center(9, '*')  center(20, '世')  center(-3)  center(5, '')  center(5, 'ab')  center()  center('x')  center(true)  center(width=5)  ljust(8)  ljust(20, '世')  ljust(9, 1)  rjust(8)  rjust(9, '*')  rjust()
find('a')  find('')  find('', 2)  find('', 100)  find('b', 1)  find('a', -2)  find('l', 2, -2)  find('a', none, 2)  find('zzz')  find(1)  find()  find('', 3, 1)  find('界')  rfind('a')  rfind('', 2)  rfind('l', 2, -2)  rfind('')
index('a')  index('zzz')  rindex('a')  rindex('', 100)  count('a')  count('')  count('', 2)  count('', 100)  count('aa')  count('l', 2, -2)  count()
startswith('a')  startswith('')  startswith(('x', 'H'))  startswith('l', 2)  startswith('l', 2, 3)  startswith('', 100)  startswith(())  startswith(1)  startswith(('a', 1))  startswith(['a'])  endswith('c', -1)  endswith('d', 2, 100)
partition(',')  partition('=')  partition(' ')  partition('')  partition(1)  partition()  rpartition(',')  rpartition('=')  rpartition(' ')  rpartition('')  removeprefix('He')  removesuffix('d')  removeprefix(none)  removesuffix('')
replace('a', 'b')  replace('', '-')  replace('a', 'b', 1)  replace('a')  replace(none, 'b')  join(['a', 'b'])  join('xyz')  join({'a': 1})  join([1])  join()  join(nothing)  strip('ab ')  strip(none)  strip(1)
translate({97: 'A', 98: none, 99: 100})  translate('x'.maketrans('abc', 'xyz'))  translate('x'.maketrans('ab', 'xy', 'c'))  translate({})  translate('x'.maketrans({'a': '1', 'b': none, 99: '!'}))  translate({97: 1.5})
maketrans('a', 'bc')  maketrans('ab', 'cd')  maketrans({'ab': 1})  maketrans(1)  maketrans('a', 'b', 'c')  format()  format_map({})  swapcase(1)  isdigit(1)  nope()  nope is defined  zfill is defined
"""
EACH_CALL = 3  # texts

NUMBERS = ["0", "1", "-1", "42", "-1234567", "1234567890123", "0.0", "-0.0", "0.5", "-2.5", "1e20", "1.5e-7", "123456.789", "1e300", "3.0", "true", "none", "'abc'", "''", "'世é'", "l", "nothing", "1e16", "0.1",
           "99999.5", "-1e-5", "255", "8364", "e|default('inf', true)|float", "-(e|default('inf', true)|float)", "e|default('nan', true)|float"]
FORMS = ["", "5", "<8", ">8", "^9", "=8", "*^9", "0=8", "+", "-", " ", "+08", "#", "#010", "08,", "010,", "011,", "012,", "013_", "_", ",", "+,", ".2", ".0", "8.3", "08.3", "<08.2", "z.1", "+z.0", "#.3", "^+9.1",
         "é<7", ".12", "20,.2", "020,.3", "{<9", "x=+9", "0<9"]
TYPES = ["", "d", "x", "X", "o", "b", "c", "n", "e", "E", "f", "F", "g", "G", "%", "s", "q"]
ODD_FORMS = [":", "..", "5.", "1 2", "ss", "0", "000005", "-05", "+-5", "0x", "0#5", "99999999999", ".101f", ".400", "<", ",_", "zz"]

STATEMENTS = r"""
{% with %}a{% endwith %}
{% with a=1 %}{{ a }}{% endwith %}{{ a }}
{% with a=1, b=2 %}{{ a }}{{ b }}{% endwith %}
{% set a=5 %}{% with a=1, b=a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}
{% with (a, b) = l[:2] %}{{ a }}{{ b }}{% endwith %}
{% with a=1 %}{% set a=2 %}{% set z=3 %}{{ a }}{% endwith %}{{ a }}{{ z }}
{% with a %}{% endwith %}
{% with a=1 b=2 %}{% endwith %}
{% with a=1, %}{{ a }}{% endwith %}
{% with a=1 %}
{% for x in l %}{% with y=x %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endwith %}{% endfor %}
{% with a=nothing.x %}{% endwith %}
{% filter upper %}abc {{ s }}{% endfilter %}
{% filter upper|replace('A','4') %}abc {{ s }}{% endfilter %}
{% filter trim %}   {{ w }} {% endfilter %}
{% filter nofilter %}x{% endfilter %}
{% filter %}x{% endfilter %}
{% filter upper %}{% set q=1 %}{% endfilter %}{{ q }}
{% filter upper %}{% filter replace('a','b') %}banana{% endfilter %}x{% endfilter %}
{% filter map('upper')|join('-') %}abc{% endfilter %}
{% set x|upper %}{% filter title %}aB cD{% endfilter %}{% endset %}{{ x }}
{% macro m(a) %}<{{ a }}{{ caller() }}>{% endmacro %}{% call m(1) %}in{{ i }}{% endcall %}
{% macro m() %}{% for x in l %}{{ caller(x) }},{% endfor %}{% endmacro %}{% call(v) m() %}[{{ v * 2 }}]{% endcall %}
{% macro m() %}{{ caller(1, b=5) }}{% endmacro %}{% call(a, b=2, c=3) m() %}{{ a }}{{ b }}{{ c }}{% endcall %}
{% macro m() %}{{ caller }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}{% if caller %}y{% else %}n{% endif %}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}
{% macro m(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ m() }}{% call m() %}y{% endcall %}
{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, b=4) }}
{% macro m(a) %}{{ varargs|length }}{% endmacro %}{{ m(1) }}{{ m() }}{{ m(1,2) }}
{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, x=2) }}
{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 3}) }}{{ m(*'x') }}
{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1,2]) }}{{ m(1, **{'b': 3}) }}{{ m(*[1], b=4) }}
{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], 2) }}
{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(**{'a': 1}, b=2) }}
{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], *[2]) }}
{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(b=2, *[1]) }}
{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(b=2, 1) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*5) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**5) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**{1: 2}) }}
{% macro m(a=1, b) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a, b=1) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}{{ m.nope }}
{% macro m(a) %}{{ kwargs }}{{ varargs }}{{ caller }}{% endmacro %}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}
{% macro a() %}[{{ caller() }}]{% endmacro %}{% macro b() %}({% call a() %}{{ caller() }}{% endcall %}){% endmacro %}{% call b() %}x{% endcall %}
{% macro a() %}[{{ caller() }}]{% endmacro %}{% macro b() %}{% set c = caller %}({% call a() %}{{ c() }}{% endcall %}){% endmacro %}{% call b() %}x{% endcall %}
{% macro a() %}{% macro q() %}{{ caller() }}{% endmacro %}{{ q() }}{% endmacro %}{% call a() %}x{% endcall %}
{% macro a() %}[{{ caller() }}]{% endmacro %}{% for x in l %}{% call a() %}{{ x }}{{ loop.index }}{% endcall %}{% endfor %}
{% macro a() %}[{{ caller() }}]{% endmacro %}{% for x in l %}{% call a() %}{% break %}{% endcall %}{% endfor %}
{% call s.upper() %}x{% endcall %}
{% call range(3) %}x{% endcall %}
{% call nothing() %}x{% endcall %}
{% call 5 %}x{% endcall %}
{% call m %}x{% endcall %}
{% call(a m() %}x{% endcall %}
{% macro a() %}{{ caller() }}{% endmacro %}{% call a()|upper %}x{% endcall %}
{% macro a() %}{{ caller() }}{% endmacro %}{% call a() %}x
{% print 1 %}{% print s, i, 'x' %}
{% print %}
{% print (1, 2) %}
{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for x in l %}{{ loop.cycle(*names) }}{% endfor %}
{% for x in l %}{{ loop.cycle() }}{% endfor %}
{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% endfor %}
{% for x in [1,1,2,2,1] %}{% if loop.changed(x, 2) %}{{ x }}{% endif %}{% endfor %}
{% for x in l %}{{ loop.changed() }}{% endfor %}
{% for x in l %}{{ loop.nope }}{{ loop.nope is defined }}{{ loop['index'] }}{% endfor %}
{% for x in l %}{{ loop.nope.x }}{% endfor %}
{% for x in l %}{{ loop(x) }}{% endfor %}
{% for a in l %}{% for b in l %}{{ loop.depth }}{{ loop.depth0 }}{{ loop.cycle(1,2) }}{% endfor %}{% endfor %}
{% for k, g in messages|groupby('role') %}{{ k }}:{{ g|length }} {% endfor %}
{% for g in messages|groupby('role') %}{{ g.grouper }}:{{ g.list|map(attribute='content')|join('+') }} {% endfor %}
{{ messages|groupby('role') }}
{{ messages|groupby('nope', default='x') }}
{{ messages|groupby('nope') }}
{{ messages|groupby }}
{{ [{'a':'x'},{'a':'X'},{'a':'b'}]|groupby('a') }}
{{ [{'a':'x'},{'a':'X'},{'a':'b'}]|groupby('a', case_sensitive=true) }}
{{ [{'a':'x'},{'a':'X'},{'a':'b'},{}]|groupby('a', default='Q')|list }}
{{ [(1,2),(1,3),(2,1)]|groupby(0) }}
{{ [(1,2),(1,3),(2,1)]|groupby('1') }}
{{ ([(1,2)]|groupby(0))[0].list }}{{ ([(1,2)]|groupby(0))[0]['grouper'] }}{{ ([(1,2)]|groupby(0))[0][0] }}
{{ [1,'a']|groupby('x') }}
{{ l|batch(2)|list }}
{{ l|batch(2, 'x')|list }}
{{ l|batch(5, 'x')|list }}
{{ l|batch(0)|list }}
{{ el|batch(0)|list }}
{{ l|batch(-1)|list }}
{{ l|batch(1)|list }}
{{ l|batch(linecount=2, fill_with=0)|list }}
{{ l|batch(2, none)|list }}
{{ l|batch }}
{{ 'abcde'|batch(2)|list }}
{{ range(7)|slice(3)|list }}
{{ range(7)|slice(3, 'x')|list }}
{{ range(2)|slice(3)|list }}
{{ range(2)|slice(3, 0)|list }}
{{ range(7)|slice(0)|list }}
{{ range(7)|slice(-2)|list }}
{{ range(7)|slice(1)|list }}
{{ []|slice(2, 'x')|list }}
{{ s|center(20) }}|
{{ s|center }}|
{{ 5|center(3) }}|
{{ s|center(width=3) }}|
{{ s|truncate(5) }}
{{ s|truncate(5, leeway=0) }}
{{ s|truncate(8, true, leeway=0) }}
{{ s|truncate(9, false, '..', 0) }}
{{ s|truncate(2, leeway=0) }}
{{ 'foo bar baz qux'|truncate(9) }}
{{ 'foo bar baz qux'|truncate(9, True) }}
{{ 'foo bar baz qux'|truncate(11) }}
{{ 'foo bar baz qux'|truncate(11, False, '...', 0) }}
{{ 'foobarbazqux'|truncate(6, False, '…', 0) }}
{{ u|truncate(6, true, '', 0) }}
{{ u|truncate(-1) }}
{{ 5|truncate(1) }}
{{ s|truncate(5, end='', leeway=none) }}
{{ s|wordcount }}{{ 'a b_c, d-e 世界 é²'|wordcount }}{{ ''|wordcount }}{{ 12|wordcount }}
{{ d|attr('x') }}|{{ d|attr('items') is defined }}|{{ s|attr('upper') is defined }}
{{ (s|attr('upper'))() }}
{{ s|attr('nope') is defined }}
{{ nothing|attr('x') }}
{% set ns = namespace(a=1) %}{{ ns|attr('a') }}
{{ s|attr(1) }}
{{ messages|sort(attribute='role,content')|map(attribute='content')|join }}
{{ [{'a':1,'b':2},{'a':1,'b':1}]|sort(attribute='a,b') }}
{{ names|map('default', 'x', boolean=true)|list }}
{{ ['1','x']|map('int', default=7)|list }}
{{ l|map('tojson', indent=2)|join }}
{{ messages|map(attribute='role', foo=1)|list }}
{{ messages|map('nofilter')|list }}
{{ messages|map()|list }}
{{ [d]|map(attribute='y.z')|list }}
{{ [d]|map(attribute='q.z', default={'z': 5})|list }}
{{ [d]|map(attribute='q.z')|list }}
{{ l|select('divisibleby', 2)|list }}
{{ l|select('divisibleby', num=2)|list }}
{{ l|select('nope')|list }}
{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'urlencode' is filter }}{{ 5 is filter }}{{ 'odd' is test }}{{ 'nope' is test }}{{ l is test }}
{{ x|upper(1) }}
{{ l|join(sep='-') }}
{{ l|join('-', d='x') }}
{{ s|replace('a') }}
{{ s|replace(old='o', new='0', count=1) }}
{{ l|sort(foo=1) }}
{{ s|default(boolean=true, default_value='x') }}
{{ l|first(1) }}
{{ 5|round(precision=1, method='floor') }}
{{ 5|abs(1) }}
{{ s|trim(chars='H') }}
{{ s|length() }}
{{ d|tojson(4) }}
{{ d|tojson(false, 1) }}
{{ joiner }}x
{{ cycler is defined }}{{ joiner is callable }}
{% set joiner = 5 %}{{ joiner }}
{% macro joiner(x) %}[{{ x }}]{% endmacro %}{{ joiner(1) }}
{% for joiner in l %}{{ joiner }}{% endfor %}
{% set format = 'x' %}{{ format }}{{ format.zfill(3) }}
{{ s['upper']() }}{{ s["format"] is defined }}
{{ d.items is defined }}{{ d.nope is defined }}{{ d['get']('x') }}
{{ '\N{BULLET}\N{bullet}\N{EM DASH}\N{NO-BREAK SPACE}\N{GRINNING FACE}' }}
{{ '\N{NULL}' == '\0' }}{{ '\N{LINE FEED}' == '\n' }}{{ '\N{ZWJ}\N{BOM}\N{NBSP}'|length }}
{{ '\N{NOT A NAME}' }}
{{ '\N' }}
{{ '\N{' }}
{{ '\N{}' }}
{{ '\N{BULLET }' }}
{{ '\N{BUL LET}' }}
{{ '\x41\x4' }}
{{ '\x' }}
{{ '\u12' }}
{{ '\u0041\U0001f600' }}
{{ '\U00110000' }}
{{ '\ud83d' }}
{{ '\101\60\7\777\18' }}
{{ '\é \世 \🦙' }}
{{ '\q\%\.\a\b\f\v' }}
{{ '\'' "\"" }}
{{ strftime_now('%f|%z|%Z|%%f|%d') }}
{{ strftime_now('%') }}
{{ strftime_now('a%') }}
{{ strftime_now('%-d %e %k|%j %U %w %a %b %p %I %y %c %x %X %G %V %u %h %n%t%C%D%F%R%T') }}
{{ strftime_now(1) }}
{{ strftime_now() }}
{{ strftime_now('%Y', '%m') }}
{{ 'ΑΣ'.lower() }}{{ 'ΑΣ'|lower }}{{ 'ΑΣ ΣΑΣ'|title }}{{ 'ΑΣ ΣΑΣ'|capitalize }}{{ 'ΑΣ'.swapcase() }}
{{ 'ß ŉ ﬁ'|upper }}{{ 'ßa ﬁx'|title }}{{ 'ßa'|capitalize }}{{ 'İ'|lower|length }}
{% if false %}{{ x|nofilter }}{{ x is notest }}{% endif %}ok
{% set x = 1, %}{{ x }}
{% set a.b = 1 %}
{% set x %}a{% endset %}{{ x }}{{ x|length }}
{% for x in l %}{% set y %}{{ x }}{% endset %}{{ y }}{% endfor %}
{{ loop.index }}
{{ f(1, *l, **d) if false else 'q' }}
{{ namespace(*[{'a': 1}]).a }}
{{ 'a' 'b' }}{{ 'x' ~ 'y' 'z' }}
{{ s.split(*[' ']) }}{{ ' '.join(*[names]) }}
{{ l|join(*['-']) }}{{ l|join(**{'d': '+'}) }}
{{ 5 is divisibleby(*[5]) }}
{% raw %}{% with %}{% endraw %}
{{ (messages|groupby('role'))|tojson }}
{{ messages|groupby('role')|map('first')|list }}
{{ messages|groupby('role')|map(attribute='grouper')|list }}
{{ messages|groupby('role')|map(attribute='list')|map('length')|list }}
{{ s is in(names) }}{{ 'a' is in names }}{{ i is ge 7 }}
{{ 3|string|center(5)|replace(' ', '.') }}
"""
LINES = ["{% filter indent(2, true) %}a\nb{% endfilter %}", "{{ \"a\\\nb\" }}", "{{ \"a\nb\" }}", "{% set x|indent %}a\nb{% endset %}{{ x }}"]


def more_templates():
    """The rows behind the first ones, which are old."""
    calls = [c for line in CALLS.strip().split("\n") for c in line.split("  ")]
    forms = [f + t for f in FORMS for t in TYPES] + ODD_FORMS
    tables = [f"{{{{ {ascii(TEXTS[(k * 11 + i * 7) % len(TEXTS)])}.{c} }}}}" for i, c in enumerate(calls) for k in range(EACH_CALL)]
    tables += [f"{{{{ '{{:{f}}}'.format({NUMBERS[(i * 7 + k * 13) % len(NUMBERS)]}) }}}}" for i, f in enumerate(forms) for k in range(2)]
    return ["{{ " + e + " }}" for line in MORE.strip().split("\n") for e in line.split("  ")] + tables + STATEMENTS.strip().split("\n") + LINES


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise ValueError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def reference(env, text, variables):
    try:
        output = env.from_string(text).render(**variables)
        output.encode()  # half a character is no text
        return {"output": output}
    except Exception as e:  # whatever Jinja2 raises: the template is refused
        return {"error": f"{type(e).__name__}: {e}"[:100]}


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_snippets(env):
    expressions = [e for line in EXPRESSIONS.strip().split("\n") for e in line.split("  ") if e]
    rows = [{"vars": VARS}]
    for text in ["{{ " + e.strip() + " }}" for e in expressions] + TEMPLATES + more_templates():
        row = {"template": text} | reference(env, text, VARS)
        if any(mark in row.get("output", "") for mark in (" at 0x", "<class", "<function")):
            row = {"template": text, "error": "prints an object of Python's"}
        if "\0" not in row.get("output", ""):  # the test's are C's strings
            rows.append(row)
    (OUT / "snippets.jsonl").write_text(lines(rows), encoding="utf-8")


def write_real(env):
    path = OUT / "real.tar.xz"
    with tarfile.open(path) as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
    rows = [json.loads(line) for line in files["cases.jsonl"].decode().split("\n") if line]
    for row in rows:
        text = row["text"] if "text" in row else files[row["template"]].decode()
        row.pop("output", row.pop("error", None))
        row |= reference(env, text, row["vars"])
    files["cases.jsonl"] = lines(rows).encode()
    with tarfile.open(path, "w:xz", preset=9) as tar:
        for name in sorted(files):  # owners and times as tarfile sets them: the same bytes each time
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            tar.addfile(info, io.BytesIO(files[name]))


def main():
    env = environment()
    write_snippets(env)
    write_real(env)


if __name__ == "__main__":
    main()
