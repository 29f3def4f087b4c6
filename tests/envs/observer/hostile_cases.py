"""Hostile pages by name, each as the body of a function of `host`, `make` and `named`: see `hostile_pages.py`."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> list[str]:
    return text.split()


MEMBERS: Final = _words(
    "querySelector getAttribute children parentElement parentNode childNodes firstChild nextSibling "
    "tagName localName attributes nodeType getBoundingClientRect elements action method id shadowRoot "
    "isConnected ownerDocument namespaceURI hasAttributes matches contains querySelectorAll getRootNode "
    "assignedSlot offsetWidth offsetHeight clientWidth clientHeight clientLeft clientTop scrollWidth "
    "scrollHeight tabIndex labels type value name data host style className dataset closest "
    "scrollIntoView firstElementChild nodeName textContent scrollLeft scrollTop scrollBy focus "
    "contentDocument open control form isContentEditable hasAttribute getClientRects"
)
"""Names of fields by which a form's own properties are shadowed."""
OF_DOCUMENT: Final = _words(
    "body head title documentElement scrollingElement querySelector querySelectorAll getElementById "
    "elementFromPoint defaultView activeElement URL createRange nodeType ownerDocument firstChild "
    "constructor location cookie forms createElement addEventListener getElementsByTagName contains "
    "implementation createTreeWalker"
)
"""Names of elements by which a document's own properties are shadowed."""

_BODIES: Final = (
    (
        "form-all",
        "make(`<form id=f ><b>text</b><button type=button>Inner</button></form>`); const f = "
        "host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-row",
        "make(`<form id=f role=row><b>text</b><button type=button>Inner</button></form>`); const f = "
        "host.lastElementChild; named(f, 'input', ...['querySelector']);",
    ),
    (
        "form-row-all",
        "make(`<form id=f role=row><b>text</b><button type=button>Inner</button></form>`); const f = "
        "host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-table-row-css",
        "make(`<form id=f style=display:table-row><b>text</b><button type=button>Inner</button>"
        "</form>`); const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-button",
        "make(`<form id=f role=button><b>text</b><button type=button>Inner</button></form>`); const "
        "f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-tabindex",
        "make(`<form id=f tabindex=0><b>text</b><button type=button>Inner</button></form>`); const f "
        "= host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-onclick",
        "make(`<form id=f onclick=1 ><b>text</b><button type=button>Inner</button></form>`); const f "
        "= host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-pointer",
        "make(`<form id=f style=cursor:pointer><b>text</b><button type=button>Inner</button></form>"
        "`); const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-combobox",
        "make(`<form id=f role=combobox><b>text</b><button type=button>Inner</button></form>`); "
        "const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-contenteditable",
        "make(`<form id=f contenteditable><b>text</b><button type=button>Inner</button></form>`); "
        "const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-labelledby",
        "make(`<form id=f role=button aria-labelledby=f><b>text</b><button type=button>Inner</button>"
        "</form>`); const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-shut",
        "make(`<form id=f style='height:0;overflow:hidden'><b>text</b><button type=button>"
        "Inner</button></form>`); const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-hidden-row",
        "make(`<form id=f role=gridcell><b>text</b><button type=button>Inner</button></form>`); "
        "const f = host.lastElementChild; named(f, 'input', ...@NAMES@);",
    ),
    (
        "form-shadow",
        "make(`<form id=f ><b>text</b><button type=button>Inner</button></form>`); const f = "
        "host.lastElementChild; named(f, 'input', ...@NAMES@); Element.prototype.attachShadow;",
    ),
    (
        "form-slot",
        "const x=document.createElement('div');host.append(x);x.attachShadow({mode:'open'}"
        ").innerHTML='<form role=row><slot></slot></form>';x.innerHTML='<button>slotted</button>';"
        "named(x.shadowRoot.firstChild,'input',...@NAMES@);",
    ),
    ("document-img", "named(host,'img',...@DOC@)"),
    ("document-form", "named(host,'form',...@DOC@)"),
    ("document-object", "named(host,'object',...@DOC@)"),
    ("document-embed", "named(host,'embed',...@DOC@)"),
    ("document-iframe", "named(host,'iframe',...@FEW@)"),
    (
        "window-iframe",
        "named(host,'iframe','mira','JSON','Math','Object','performance','getComputedStyle','Node',"
        "'Element','Document','innerWidth','scrollY','navigation','Range','URL')",
    ),
    ("window-img", "named(host,'img','mira','latest','window','top','self','frames','parent')"),
    (
        "window-id",
        "for(const n of ['mira','JSON','location','window','scrollX','performance']){const "
        "d=document.createElement('div');d.id=n;host.append(d)}",
    ),
    ("math-input", "make('<math><input><input type=checkbox></math>')"),
    ("math-select", "make('<math><select></select></math>')"),
    (
        "math-textarea",
        "make('<math><textarea></textarea><button>x</button><iframe></iframe><label>l</label><slot>"
        "</slot><details></details><summary>s</summary></math>')",
    ),
    (
        "null-ns",
        "for(const t of ['input','select','textarea','button','label','iframe','frame','slot',"
        "'details','summary','a','form','img','video'])host.append(document.createElementNS(null,t),"
        "document.createElementNS('urn:x',t),document.createElementNS('http://www.w3.org/2000/svg',"
        "t))",
    ),
    (
        "null-ns-html-named",
        "for(const t of ['html','body','head','svg',"
        "'math'])host.append(document.createElementNS(null,t),document.createElementNS('urn:x',t))",
    ),
    (
        "svg-input",
        "make('<svg width=200 height=200><input><select/><a href=#x><text>t</text></a><foreignObject "
        "width=100 height=100></foreignObject></svg>')",
    ),
    (
        "svg-foreign-html",
        "make('<svg width=200 height=100><foreignObject width=200 height=100><form role=row><input "
        "name=querySelector><button>In</button></form></foreignObject></svg>')",
    ),
    (
        "svg-listeners",
        "make('<svg width=200 height=100 onclick=1><g onclick=1><rect class=a width=20 height=20 "
        "onclick=1 /></g></svg>')",
    ),
    (
        "svg-in-form",
        "make(`<form id=f ><b>text</b><button type=button>Inner</button></form>`); const f = "
        "host.lastElementChild; named(f, 'input', ...@NAMES@); f.insertAdjacentHTML('beforeend',"
        "'<svg width=90 height=90><rect width=9 height=9 /></svg>')",
    ),
    (
        "role-row-nested",
        "let d=host;for(let i=0;i<300;i++){const e=document.createElement('div');"
        "e.setAttribute('role','row');d.append(e);d=e}d.textContent='x'",
    ),
    (
        "role-odd",
        "for(const r of ['row','grid','table','gridcell','\\u0001','constructor','__proto__',"
        "'toString','hasOwnProperty','row row','ROW',' row','none','presentation','\\ud800',"
        "'\\0'])for(const t of ['div','span','input','a','select','button','form','svg','td','tr',"
        "'iframe','summary','label','li']){const e=document.createElement(t);e.setAttribute('role',"
        "r);e.append('t');host.append(e)}",
    ),
    (
        "tag-odd",
        "for(const t of ['constructor','__proto__'.replace(/_/g,'x'),'tostring','valueof',"
        "'hasownproperty','x-constructor']){host.append(Object.assign(document.createElement(t),"
        "{textContent:'a'}))}; host.append(document.createElementNS('http://www.w3.org/1999/xhtml',"
        "'__proto__'),document.createElementNS('http://www.w3.org/1999/xhtml','constructor'))",
    ),
    (
        "type-odd",
        "for(const r of ['constructor','__proto__','toString'])for(const t of ['input',"
        "'button']){const e=document.createElement(t);e.setAttribute('type',r);host.append(e)}",
    ),
    (
        "aria-owns-cycle",
        "make('<div id=o1 role=row aria-owns=o2><button>a</button></div><div id=o2 role=grid "
        "aria-owns=o1><button>b</button></div>')",
    ),
    (
        "labelledby-cycle",
        "make('<button id=c1 aria-labelledby=c2>a</button><button id=c2 aria-labelledby=c1>b</button>"
        '<button id=c3 aria-labelledby="c3 c3 c3">c</button>\')',
    ),
    (
        "label-loop",
        "make('<label for=li id=ll>l<label for=ll2><input id=li aria-labelledby=ll></label></label>"
        "<label><label><label><input></label></label></label>')",
    ),
    (
        "form-self",
        "make('<form id=fs form=fs><input form=fs><button form=fs>x</button></form><button form=nope>y</button>')",
    ),
    (
        "slot-nested",
        "const a=document.createElement('div');host.append(a);const r=a.attachShadow({mode:'open'});"
        "r.innerHTML='<slot name=a></slot><slot></slot>';const s=document.createElement('slot');"
        "s.slot='a';a.append(s);const r2=document.createElement('div');r.append(r2);"
        "r2.attachShadow({mode:'closed'}).append(document.createElement('slot'));"
        "r2.append(document.createElement('slot'));",
    ),
    (
        "huge-attr",
        "const b=document.createElement('button');b.setAttribute('aria-label','x'.repeat(5e6));"
        "b.id='y'.repeat(5e6);b.title='z'.repeat(5e6);host.append(b)",
    ),
    ("huge-backslashes", "const b=document.createElement('p');b.textContent='\\\\'.repeat(300000)+'[x';host.append(b)"),
    (
        "huge-href",
        "const b=document.createElement('a');b.setAttribute('href','?'.repeat(300000)+'\\nx');"
        "host.append(b);b.textContent='l';const c=b.cloneNode();host.append(c);",
    ),
    (
        "huge-role",
        "const b=document.createElement('div');b.setAttribute('role','r'.repeat(5e6));b.textContent='x';host.append(b)",
    ),
    (
        "huge-spaces",
        "const b=document.createElement('button');b.textContent=' '.repeat(2e6)+'x';host.append(b);"
        "const c=document.createElement('p');c.textContent=' '.repeat(2e6)+'x';host.append(c)",
    ),
    (
        "huge-text-row",
        "const b=document.createElement('div');b.setAttribute('role','row');b.textContent='word "
        "'.repeat(4e5);host.append(b)",
    ),
    ("huge-text", "const b=document.createElement('p');b.textContent='w'.repeat(3e6);host.append(b)"),
    (
        "many-children",
        "const d=document.createElement('button');for(let i=0;i<30000;"
        "i++)d.append(document.createElement('i'));host.append(d)",
    ),
    (
        "many-options",
        "const d=document.createElement('select');for(let i=0;i<50000;i++)d.append(new Option('o'+i));host.append(d)",
    ),
    (
        "many-labelledby",
        "const b=document.createElement('button');b.setAttribute('aria-labelledby','host "
        "'.repeat(50000));host.append(b)",
    ),
    (
        "many-labels",
        "make('<input id=ml>');for(let i=0;i<3000;i++){const l=document.createElement('label');"
        "l.htmlFor='ml';l.textContent='l'+i;host.append(l)}",
    ),
    (
        "nested-2500",  # Chromium's own layout ends at about 4,000
        "let d=host;for(let i=0;i<2500;i++){const e=document.createElement('div');d.append(e);d=e}d.textContent='deep'",
    ),
    (
        "nested-2500-inline",
        "let d=host;for(let i=0;i<2500;i++){const e=document.createElement('span');d.append(e);d=e}"
        "d.textContent='deep'",
    ),
    ("nested-20000-parsed", "make('<div>'.repeat(20000)+'deep')"),
    (
        "nested-20000-hidden",
        "make('<p id=deep style=display:none></p><button aria-labelledby=deep>named</button>');"
        "let d=document.getElementById('deep');"
        "for(let i=0;i<20000;i++){const e=document.createElement('div');d.append(e);d=e}d.textContent='deep'",
    ),
    (
        "nested-5000-clickable",
        "let d=host;for(let i=0;i<5000;i++){const e=document.createElement('span');"
        "e.setAttribute('onclick','1');d.append(e);d=e}d.textContent='deep'",
    ),
    (
        "nested-2000-buttons",
        "let d=host;for(let i=0;i<2000;i++){const e=document.createElement('div');"
        "e.setAttribute('role','button');d.append(e);d=e}d.textContent='deep'",
    ),
    (
        "nested-shadow-300",
        "let d=host;for(let i=0;i<300;i++){const e=document.createElement('div');d.append(e);"
        "d=e.attachShadow({mode:i%2?'open':'closed'})}d.innerHTML='<button>deep</button>'",
    ),
    (
        "wide-empty-listeners",
        "for(let i=0;i<3000;i++){const e=document.createElement('div');e.onclick=()=>1;"
        "e.textContent='r'+i;host.append(e)}",
    ),
    (
        "custom-throwing",
        "class T extends HTMLElement{get children(){throw 1}get firstChild(){throw 1}get "
        "shadowRoot(){throw 1}getAttribute(){throw 1}get nodeType(){throw 1}"
        "getBoundingClientRect(){throw 1}};customElements.define('x-throw',T);make('<x-throw "
        "role=button>a</x-throw><x-throw>b</x-throw>')",
    ),
    (
        "custom-builtin",
        "class B extends HTMLButtonElement{get type(){throw 1}get labels(){throw 1}};"
        "customElements.define('x-btn',B,{extends:'button'});make('<button is=x-btn>bb</button>')",
    ),
    (
        "poisoned-prototypes",
        "for(const P of [Node,Element,HTMLElement,Document,HTMLInputElement])for(const n of "
        "Object.getOwnPropertyNames(P.prototype)){try{Object.defineProperty(P.prototype,n,"
        "{get(){throw new Error('page ran')},configurable:true})}catch{}}",
    ),
    (
        "poisoned-builtins",
        "Array.prototype.map=()=>{throw 1};JSON.stringify=()=>{throw 1};String.prototype.replace=()=>"
        "{throw 1};window.getComputedStyle=()=>{throw 1};Map.prototype.get=()=>{throw 1}",
    ),
    ("navigation-throws", "Object.defineProperty(window,'navigation',{get(){throw 1},configurable:true})"),
    ("navigation-undefined", "Object.defineProperty(window,'navigation',{value:undefined,configurable:true})"),
    ("navigation-number", "Object.defineProperty(window,'navigation',{value:3,configurable:true})"),
    (
        "navigation-proxy",
        "Object.defineProperty(window,'navigation',{value:new Proxy({},{get(){throw 1},"
        "ownKeys(){throw 1}}),configurable:true})",
    ),
    (
        "navigation-fake-class",
        "class Navigation{};Object.defineProperty(window,'navigation',{value:new Navigation(),configurable:true})",
    ),
    (
        "frame-navigation-throws",
        "make('<iframe srcdoc=\"<button>In</button><script>Object.defineProperty(window,&quot;"
        "navigation&quot;,{get(){throw 1}})</script>\"></iframe>')",
    ),
    (
        "frame-odd-schemes",
        "for(const s of ['about:blank','javascript:1','data:text/html,<button>d</button>','blob:x'])"
        "{const f=document.createElement('iframe');f.setAttribute('src',s);host.append(f)}",
    ),
    (
        "frame-odd-addresses",
        "for(const s of ['http://[','','http://127.0.0.1:1/','about:srcdoc'])"
        "{const f=document.createElement('iframe');f.setAttribute('src',s);host.append(f)}",
    ),
    (
        "frame-emptied",
        "const f=document.createElement('iframe');host.append(f);f.contentDocument.documentElement.remove()",
    ),
    ("frame-opened", "const f=document.createElement('iframe');host.append(f);f.contentDocument.open()"),
    (
        "frame-svg-doc",
        "const f=document.createElement('iframe');f.src='data:image/svg+xml,<svg "
        "xmlns=%22http://www.w3.org/2000/svg%22 width=%22100%22 height=%2290%22><rect width=%2250%22 "
        "height=%2250%22/></svg>';host.append(f)",
    ),
    (
        "frame-clobbered",
        "const f=document.createElement('iframe');host.append(f);const d=f.contentDocument;for(const "
        "n of @DOC@){const i=Document.prototype.createElement.call(d,'img');i.setAttribute('name',n);"
        "Node.prototype.appendChild.call(Object.getOwnPropertyDescriptor(Document.prototype,"
        "'body').get.call(d),i)}",
    ),
    (
        "object-embed",
        'make(\'<object data="data:text/html,<button>o</button>" type=text/html role=button '
        'tabindex=0></object><embed src="data:text/html,x" type=text/html><object><button>'
        "fallback</button></object>')",
    ),
    (
        "select-odd",
        "make('<select role=row><option>a</select><select multiple size=0><optgroup><option>"
        '</optgroup></select><select><hr><option label="">x</select>\')',
    ),
    (
        "datalist-odd",
        "make('<input list=dl><datalist id=dl><option value=a><option></datalist><input list=host>"
        "<input list=dl type=checkbox>')",
    ),
    (
        "details-odd",
        "make('<details><summary><form><input name=open><input name=parentNode></form></summary><p>"
        "x</details><details><form><summary>inner</summary></form></details><summary>lone</summary>')",
    ),
    ("details-form", "make('<form role=details><input name=open><summary>x</summary></form>')"),
    (
        "table-odd",
        "make('<table role=grid><tr role=row><td role=gridcell><table><tr role=row><td><form "
        "role=row><input name=querySelector></form></table></table><tr><td>stray')",
    ),
    (
        "doctype-nodes",
        "host.append(document.createComment('c'),document.createProcessingInstruction('x','y'));"
        "document.append(document.createComment('end'))",
    ),
    ("surrogate-name", "make('<button id=sn></button>');host.lastChild.setAttribute('aria-label','Pay\\ud800');"),
    ("surrogate-tag", "make('<x\\ud800>t</x\\ud800><button\\ud800 onclick=1>t</button\\ud800>')"),
    (
        "surrogate-everything",
        "document.title='t\\ud800';make('<p></p><select><option></select><input>');"
        "host.querySelector('p').textContent='\\udc00\\0';"
        "host.querySelector('option').textContent='\\ud800';host.querySelector('input').value='\\ud83d'",
    ),
    (
        "form-labels",
        "make('<label><form><input name=control></form></label><label id=lb for=fx>x</label><form "
        "id=fx><input name=labels></form>')",
    ),
    (
        "dialog-form",
        "make('<dialog open><form method=dialog><input name=method><input name=action><button>"
        "ok</button></form></dialog>')",
    ),
    (
        "form-formmethod",
        "make(`<form id=f method=post action=/x><b>text</b><button type=button>Inner</button></form>"
        "`); const f = host.lastElementChild; named(f, 'input', ...['method', 'action', 'elements', "
        "'submit', 'enctype', 'target']); f.insertAdjacentHTML('beforeend','<button formmethod=get>"
        "S</button>')",
    ),
    (
        "popover",
        "make('<div popover id=pp><form><input name=popover></form></div><button popovertarget=pp>pop</button>')",
    ),
    (
        "zero-nan-css",
        'make(\'<div style="transform:matrix(0,0,0,0,0,0)"><button>t</button></div><div '
        'style="zoom:0.0001"><button>z</button></div><div style="width:1e30px;height:1e30px">x</div>'
        '<div style="position:absolute;left:1e30px"><button>far</button></div>\')',
    ),
    ("content-visibility", "make('<div style=content-visibility:hidden><form><input name=clientHeight></form></div>')"),
    ("fullscreen-top-layer", "make('<dialog id=dd></dialog>')"),
    (
        "map-area",
        "make('<img usemap=#mm width=50 height=50><map name=mm><area href=/x shape=default><area>"
        "</map><map name=querySelector><area href=/y></map>')",
    ),
    (
        "meter-output",
        "make('<output form=zz>o</output><meter value=1></meter><progress></progress><fieldset "
        "form=q name=elements><legend>x</legend></fieldset>')",
    ),
    (
        "template-noscript",
        "make('<template shadowrootmode=open><button>t</button></template><noscript><button>n</button></noscript>')",
    ),
    (
        "wbr-rtl",
        "make('<p>\\u202eabc\\u202c<wbr>\\u0001 3\\u0005</p><button>\\u00010\\u0005</button><button "
        'aria-label="\\u00020\\u0005">m</button>\')',
    ),
    (
        "xlink",
        "make('<svg width=50 height=50><a xlink:href=/x><rect width=50 height=50 /></a><a "
        "href=javascript:1><text y=20>j</text></a></svg>')",
    ),
)

CASES: Final = tuple(
    (
        name,
        body.replace("@NAMES@", repr(MEMBERS))
        .replace("@DOC@", repr(OF_DOCUMENT))
        .replace("@FEW@", repr(OF_DOCUMENT[:12])),
    )
    for name, body in _BODIES
)
