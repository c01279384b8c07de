"""Builds the static site from every Markdown file of the repository: make docs.

    build.py REPOSITORY OUTPUT

Pages keep the places that they have in the repository, so that their links work in the site as they
do there. Files that pages link to are copied; a link to a folder leads to its README. A link to
what does not exist, and a heading that is linked and missing, fail the build (mkdocs, strict). So
does a page that would load something from elsewhere.
"""

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

# A link or a picture: its text, its target without the title, and what follows.
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?((?:\s+\"[^\"]*\")?\))", re.DOTALL)
# What HTML in a page names.
NAMED = re.compile(r"""((?:src|srcset)=["'])([^"':#]+)(["'])""")
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
# Pages that are no part of the documentation: notes beside code and test data.
LEFT_OUT = re.compile(r"(^|/)(testdata|\.work)/")
# The page of all evidence, which a program makes of the bundles.
GALLERY = "docs/gallery.md"


def tracked(root):
    """The files that git knows or would add, as they are in the work tree."""
    out = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True, text=True)
    return sorted({f for f in out.stdout.split("\0") if f and (root / f).is_file()})


def main(root, out):
    source, site = out / "source", out / "site"
    shutil.rmtree(source, ignore_errors=True)
    files = tracked(root)
    pages = [f for f in files if f.endswith(".md") and not LEFT_OUT.search(f)]
    for page in pages:
        write(source / page, rewrite(root, source, page, set(pages), (root / page).read_text()))
    if (root / "experiments").is_dir():  # tests build the pages of other folders
        subprocess.run(["go", "run", "./operator/test/gallery", str(root / "experiments"), str(source / "docs")], cwd=root, check=True)
        write(source / GALLERY, rewrite(root, source, GALLERY, set(pages), (source / GALLERY).read_text()))
    shutil.copyfile(pathlib.Path(__file__).parent / "site.css", source / "site.css")
    settings = pathlib.Path(__file__).resolve().parent / "mkdocs.yml"
    config = {"INHERIT": str(settings), "docs_dir": str(source), "site_dir": str(site), "nav": navigation(root, pages)}
    write(out / "mkdocs.yml", yaml.safe_dump(config, sort_keys=False))
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", str(out / "mkdocs.yml")], check=True)
    from_elsewhere(site)
    print(f"{len(pages)} pages in {site}")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rewrite(root, source, page, pages, text):
    """Copies what a page links to, and leads links to folders to their READMEs."""

    def link(match):
        before, target, anchor, after = match.group(1), match.group(2), match.group(3) or "", match.group(4)
        if re.match(r"[a-z]+:", target):
            return match.group(0)
        try:
            file = (root / page).parent.joinpath(target).resolve().relative_to(root)
        except ValueError:
            return match.group(0)  # mkdocs says that it does not exist
        if (root / file).is_dir():
            readme = (file / "README.md").as_posix()
            if readme in pages:
                return before + target.rstrip("/") + "/README.md" + anchor + after
            return before.lstrip("!")[1:-2]  # a folder of code: its name is all that a site can show
        if file.as_posix() not in pages:
            copy(file)
        return match.group(0)

    def copy(file):
        if (root / file).is_file():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, source / file)

    def named(match):
        copy(pathlib.PurePosixPath(page).parent / match.group(2))
        return match.group(0)

    parts = FENCED.split(text)
    return "".join(part if i % 2 else NAMED.sub(named, LINK.sub(link, part)) for i, part in enumerate(parts))


def navigation(root, pages):
    """The sections of docs/README.md with the pages that each links to, and then all others."""
    nav, seen = ["README.md", {"Documentation": "docs/README.md"}], {"README.md", "docs/README.md"}
    if (root / "experiments").is_dir():
        nav.append({"Gallery": GALLERY})
    for section in re.split(r"^## ", (root / "docs/README.md").read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        own = []
        for match in LINK.finditer(body):
            page = (root / "docs" / match.group(2)).resolve()
            page = page.relative_to(root).as_posix() if page.is_relative_to(root) else ""
            if page in pages and page not in seen:
                seen.add(page)
                own.append(page)
        if own:
            nav.append({title.strip(): own})
    for title, prefix in (("Commands", "docs/reference/cli/"), ("Catalogue", "experiments/"), ("Systems", "systems/"), ("Infrastructure", "infra/"), ("Design", "docs/design/")):
        own = [p for p in pages if p.startswith(prefix) and p not in seen]
        if own:
            seen.update(own)
            nav.append({title: own})
    rest = [p for p in pages if p not in seen]
    return nav + ([{"More": rest}] if rest else [])


class Loads(html.parser.HTMLParser):
    """What a page loads by itself; links that a reader follows are none of it."""

    def __init__(self):
        super().__init__()
        self.urls = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        for name in ("src", "srcset", "data", "poster"):
            if given.get(name):
                self.urls.append(given[name])
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next", "edit", "alternate"):
            self.urls.append(given.get("href") or "")


def from_elsewhere(site):
    """Fails if a page would load something from another host."""
    wrong = set()
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text())
        wrong |= {f"{page.relative_to(site)} loads {u}" for u in loads.urls if re.match(r"(https?:)?//", u)}
    if wrong:
        sys.exit("a page must load nothing from elsewhere:\n" + "\n".join(sorted(wrong)[:20]))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
