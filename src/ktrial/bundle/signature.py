"""OpenSSH signatures over a bundle's list of digests (ssh-keygen(1), -Y sign and -Y verify)."""

import re
import subprocess
import tempfile
from pathlib import Path

from ktrial.bundle.errors import NotSignable, SignatureWrong

NAMESPACE = "ktrial-bundle"
"""A signature for another purpose, such as a git commit's, is none for a bundle (PROTOCOL.sshsig)."""
MOST_BYTES = 64 << 10
_PROGRAM = "ssh-keygen"
_SECONDS = 60
_PRINCIPAL = re.compile(r"[A-Za-z0-9@._+-]{1,200}")


def signed(file: Path, key: Path, manifest: bytes) -> bytes:
    """The signature of the manifest. A key may ask its owner for a passphrase. Raises NotSignable."""
    key = key.expanduser()
    if not key.is_file():
        raise NotSignable(file=file, problem=f"there is no key {key}")
    with tempfile.TemporaryDirectory(prefix="ktrial-sign-") as directory:
        message = Path(directory) / "manifest"
        message.write_bytes(manifest)
        command = [_PROGRAM, "-Y", "sign", "-q", "-f", str(key.absolute()), "-n", NAMESPACE, str(message)]
        try:
            ran = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
            if ran.returncode:
                raise NotSignable(file=file, problem=_said(ran.stderr))
            return message.with_name(message.name + ".sig").read_bytes()
        except OSError as error:
            raise NotSignable(file=file, problem=f"{_PROGRAM} cannot be run ({error.strerror})") from error


def signer(file: Path, signers: Path, manifest: bytes, signature: bytes) -> str:
    """Who signed it, of those whom the file of allowed signers names. Raises SignatureWrong."""
    signers = signers.expanduser().absolute()
    if not signers.is_file():
        raise SignatureWrong(file=file, problem=f"there is no file {signers}", signers=signers)
    with tempfile.TemporaryDirectory(prefix="ktrial-verify-") as directory:
        place = Path(directory) / "signature"
        place.write_bytes(signature)
        common = [_PROGRAM, "-Y"]
        which = ["-f", str(signers), "-n", NAMESPACE, "-s", str(place)]
        principals = _ran(file, signers, [*common, "find-principals", *which], b"")
        name = principals.splitlines()[0].split(",")[0].strip() if principals.strip() else ""
        if not _PRINCIPAL.fullmatch(name):
            raise SignatureWrong(file=file, problem="its key is nobody's there", signers=signers)
        _ran(file, signers, [*common, "verify", *which, "-I", name], manifest)
        return name


def _ran(file: Path, signers: Path, command: list[str], given: bytes) -> str:
    try:
        ran = subprocess.run(command, input=given, capture_output=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"{_PROGRAM} cannot be run ({error})"
        raise SignatureWrong(file=file, problem=problem, signers=signers) from error
    if ran.returncode:
        raise SignatureWrong(file=file, problem=_said(ran.stderr or ran.stdout), signers=signers)
    return ran.stdout.decode("utf-8", "replace")


def _said(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return f"ssh-keygen says: {lines[-1].rstrip('.')}" if lines else "ssh-keygen refuses it"
